"""`rlcourse build-model`: what it reads, that it resumes where it stopped, and what it says."""

import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn.functional import cross_entropy

from rlcourse.errors import UserError
from rlcourse.policy import Policy
from rlcourse.policy.static_decoding import can_decode_statically
from rlcourse.pretraining import build as building
from rlcourse.pretraining.build import Asked, build, held_out_loss, texts_of
from rlcourse.pretraining.documents import ONE_IN, Documents, Stories
from rlcourse.pretraining.model import random_policy
from rlcourse.pretraining.sizes import SIZES, Size
from rlcourse.signals import Interrupted
from rlcourse.tasks import Problem, stories, word_problems
from rlcourse.tasks.word_problems import is_held_out
from rlcourse.training import load_recipe, train
from rlcourse.training.measuring.alarms import Alarms

LEAST = Size(1, 16, 32, 2, vocabulary=300, rows=4, at_once=2, lr=1e-3)
STEPS = 4
GSM8K = [
    Problem(f"What is {n} + {n}?", f"It is <<{n}+{n}={2 * n}>>.\n#### {2 * n}") for n in range(6)
]


@pytest.fixture(autouse=True)
def least(monkeypatch):
    monkeypatch.setitem(SIZES, "least", LEAST)
    monkeypatch.setattr(building, "SAMPLE", 20)
    monkeypatch.setattr("rlcourse.pretraining.sizes.LONGEST_SOLUTION", 12)


@pytest.fixture
def data(tmp_path):
    place = tmp_path / "gsm8k"
    place.mkdir()
    lines = [json.dumps({"question": p.question, "answer": p.answer}) for p in GSM8K]
    for name in ("train", "test"):
        (place / f"{name}.jsonl").write_text("\n".join(lines))
    return str(place)


def asked(data, **changes):
    """So few tokens that it takes STEPS steps."""
    values = {"size": "least", "data": data, "tokens": STEPS * LEAST.rows * 150}
    return Asked(**values | changes)


def built(out, data, resume=False, changes=None, **settings):
    settings = {"device": "cpu"} | settings
    options = {"progress": False, "eval_problems": 2, "resume": resume}
    return build(out, asked(data, **changes or {}), settings, **options)


def weights(place):
    policy = Policy.load(place, device="cpu")
    return torch.cat([p.detach().flatten() for p in policy.parameters()])


# What is read


def test_what_is_read_hangs_on_the_seed_and_the_place_alone():
    one, other = Documents(GSM8K, 40, seed=3), Documents(GSM8K, 40, seed=3)
    backwards = [other[i] for i in reversed(range(40))]
    assert one[:] == list(reversed(backwards))
    assert one[:] != Documents(GSM8K, 40, seed=4)[:]
    with pytest.raises(IndexError):
        one[40]


def test_each_epoch_has_every_problem_of_gsm8k_once():
    epoch = len(GSM8K) * ONE_IN
    read = Documents(GSM8K, 2 * epoch, seed=0)[:]
    for some in (read[:epoch], read[epoch:]):
        assert sorted(p.question for p in some[::ONE_IN]) == sorted(p.question for p in GSM8K)


def test_generated_problems_are_solved_exactly_and_none_is_held_out():
    held_out = {p.question for p in word_problems.problems(200, 0, split="evaluation")}
    generated = [p for p in Documents(GSM8K, 200, seed=0)[:] if p not in GSM8K]
    assert len({p.template for p in generated}) > 10
    for problem in generated:
        assert problem.question not in held_out
        assert not is_held_out(problem.template, problem.numbers)
        *steps, last = problem.answer.splitlines()
        for step in steps:
            left, _, result = step.partition(" = ")
            assert eval(left) == int(result)
        assert last == f"#### {result}"


# What it is made of


def test_every_text_can_be_written_and_digits_stay_apart():
    tokenizer = random_policy(LEAST, texts_of(GSM8K), seed=0).tokenizer
    text = "Zoë pays €1,204.50 – or 「more」?\n#### 1204"
    ids = tokenizer(text)["input_ids"]
    assert tokenizer.decode(ids) == text
    pieces = [tokenizer.decode([i]) for i in tokenizer("#### 1204")["input_ids"]]
    assert pieces[-4:] == ["1", "2", "0", "4"]


@pytest.mark.parametrize("name", ["smallest", "small", "medium"])
def test_the_sizes_are_what_is_said_of_them(name):
    size = SIZES[name]
    policy = random_policy(size, [chr(33 + i % 90) * (i % 7) for i in range(99)], seed=0)
    found = sum(p.numel() for p in policy.parameters())
    whole = found + (size.vocabulary - len(policy.tokenizer)) * size.hidden
    guide = (Path(__file__).parents[2] / "course" / "gsm8k.md").read_text("utf-8")
    assert f"{whole:,}" in guide
    assert can_decode_statically(policy.model)


def test_the_loss_that_is_told_is_that_of_the_solutions(data):
    policy = random_policy(LEAST, texts_of(GSM8K), seed=0)
    losses = []
    for p in GSM8K:
        prompt = policy.tokenizer(f"Question: {p.question}\nAnswer:")["input_ids"]
        answer = [*policy.tokenizer(p.answer)["input_ids"], policy.tokenizer.eos_token_id]
        logits = policy.model(torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
        losses.append(cross_entropy(logits, torch.tensor(answer), reduction="none"))
    expected = torch.cat(losses).mean().item()
    for rows in (1, 4, 100):
        assert held_out_loss(policy, GSM8K, rows) == pytest.approx(expected, rel=1e-5)


# A build from its first line to its last


def test_a_build_ends_in_a_model_that_the_other_commands_take(tmp_path, data, monkeypatch):
    out = tmp_path / "out"
    found = built(out, data)
    recipe = load_recipe(out / "recipe.yaml")
    assert found.facts == json.loads((out / "result.json").read_text())
    assert set(found.facts["tasks"]) == {"gsm8k", "word_problems"}
    assert str(out / "policy") in found.summary()
    assert not torch.equal(weights(out / "policy"), weights(out / "start"))
    assert torch.equal(weights(out / "policy"), weights(out / "training" / "policy"))
    assert recipe.steps == found.facts["steps"] >= 1

    grpo = load_recipe(out / "grpo.yaml")
    assert grpo.policy == str(out / "policy")
    small = {"steps": 1, "max_tokens": 5, "eval_problems": 0, "device": "cpu"}
    assert len(train(grpo.but(**small), progress=False).metrics) == 1
    assert built(out, data, resume=True).facts == found.facts


def test_a_build_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path, data, monkeypatch):
    last = 3
    plain = built(tmp_path / "plain", data)
    assert plain.facts["steps"] > last
    seen, heard = [], Alarms.heard

    def press(*arguments):
        seen.append(1)
        if len(seen) == last:
            os.kill(os.getpid(), signal.SIGINT)
        return heard(*arguments)

    out = tmp_path / "out"
    with monkeypatch.context() as pressed:
        pressed.setattr(Alarms, "heard", press)
        with pytest.raises(Interrupted, match=f"build .* after step {last} of .*--resume") as said:
            built(out, data)
        assert "--out" not in str(said.value), "which the command does not have"
    assert not (out / "policy").exists()
    resumed = built(out, data, resume=True)
    assert torch.equal(weights(out / "policy"), weights(tmp_path / "plain" / "policy"))
    assert resumed.facts["tasks"] == plain.facts["tasks"]


def test_a_model_of_stories_needs_no_data(tmp_path, monkeypatch):
    monkeypatch.setitem(SIZES, "least", replace(LEAST, reads="stories", longest=12))
    monkeypatch.setattr("rlcourse.tasks.gsm8k.load", lambda *given: pytest.fail("asked the hub"))
    out = tmp_path / "out"
    found = built(out, None)
    assert set(found.facts["tasks"]) == {"stories"}
    grpo = load_recipe(out / "grpo.yaml")
    assert (grpo.task, grpo.data, grpo.max_tokens) == ("stories", None, 12)
    small = {"steps": 1, "eval_problems": 0, "device": "cpu"}
    assert len(train(grpo.but(**small), progress=False).metrics) == 1


def test_with_data_a_model_of_stories_is_measured_on_gsm8k_as_well(tmp_path, data, monkeypatch):
    monkeypatch.setitem(SIZES, "least", replace(LEAST, reads="stories", longest=12))
    assert set(built(tmp_path / "out", data).facts["tasks"]) == {"gsm8k", "stories"}


def test_stories_are_read_among_drills_and_none_is_held_out():
    read = Stories(80, seed=0)
    assert read[:] == [Stories(80, seed=0)[i] for i in range(80)]
    held_out = {p.question for p in stories.problems(200, 0, "evaluation")}
    for place, problem in enumerate(read[:]):
        assert problem.question.startswith("Compute ") == (place % ONE_IN == 0)
        assert problem.question not in held_out


def test_minutes_become_steps_once_and_for_all(tmp_path, data, monkeypatch):
    out = tmp_path / "out"
    minutes = {"tokens": None, "minutes": 1e-6}
    built(out, data, changes=minutes)
    assert load_recipe(out / "recipe.yaml").steps == 1
    (out / "result.json").unlink()
    monkeypatch.setattr(building, "begin", lambda *arguments: pytest.fail("timed again"))
    built(out, data, resume=True, changes=minutes)


# What can go wrong


def test_without_data_nothing_is_begun(tmp_path):
    with pytest.raises(UserError, match="There is no directory"):
        built(tmp_path / "out", str(tmp_path / "nowhere"))
    assert not (tmp_path / "out").exists()


def test_another_model_is_left_alone(tmp_path, data):
    out = tmp_path / "out"
    out.mkdir()
    (out / "config.json").write_text("{}")
    with pytest.raises(UserError, match="holds another model: choose another directory"):
        built(out, data)
    assert os.listdir(out) == ["config.json"]


def test_a_build_is_neither_begun_twice_nor_gone_on_with_in_other_words(tmp_path, data):
    out = tmp_path / "out"
    built(out, data)
    with pytest.raises(UserError, match="already holds a finished build: add --resume"):
        built(out, data)
    (out / "result.json").unlink()
    with pytest.raises(UserError, match="started with seed=0, not 1: resume it with the same"):
        built(out, data, resume=True, changes={"seed": 1})


@pytest.mark.parametrize("key", ["steps", "policy", "seed"])
def test_what_the_build_decides_is_no_setting(tmp_path, data, key):
    with pytest.raises(UserError, match=f"{key} is set by the build itself"):
        build(tmp_path / "out", asked(data), {key: 1})


def test_a_size_that_is_not_there_is_named(tmp_path, data):
    with pytest.raises(UserError, match="there is no size 'huge': choose smallest, stories"):
        built(tmp_path / "out", data, changes={"size": "huge"})
