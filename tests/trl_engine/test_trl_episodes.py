"""Episodes by TRL: those of the local engine, with its weights; and our environments as TRL's."""

import warnings

import pytest
import torch
from datasets import Dataset
from engines import assert_same_weights

from rlcourse.errors import UserError
from rlcourse.policy import Policy
from rlcourse.tasks import CalculatorEnvironment
from rlcourse.training import load_recipe
from rlcourse.training import train as train_locally

trl = pytest.importorskip("trl", reason="the extra `trl` is not installed")

from rlcourse import trl_engine  # noqa: E402
from rlcourse.trl_engine.playing import OVER, ToolEnvironment  # noqa: E402


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """A policy that calls now and then: without any call, no episode has an observation."""
    recipe = load_recipe("calculator_sft", steps=12, eval_problems=0, device="cpu")
    place = tmp_path_factory.mktemp("shown") / "policy"
    train_locally(recipe, progress=False).policy.save(place)
    return place


def small(shown, **changes):
    settings = {"policy": str(shown), "warm_start": None, "steps": 2, "prompts_per_step": 2}
    settings |= {"group_size": 4, "eval_problems": 0, "checkpoint_every": 0, "device": "cpu"}
    return load_recipe("calculator_grpo", **(settings | changes))


def test_both_engines_play_the_same_episodes_and_learn_the_same(shown, tmp_path, monkeypatch):
    """Rewards of the two engines are equal by a rule that a beginner is paid by, too."""
    respond = CalculatorEnvironment.respond

    def by_length(self, text):
        reply = respond(self, text)
        return reply._replace(reward=len(text) % 3 / 2)

    monkeypatch.setattr(CalculatorEnvironment, "respond", by_length)
    recipe = small(shown)
    ours = train_locally(recipe, tmp_path / "local", progress=False)
    theirs = trl_engine.train(recipe, tmp_path / "trl", progress=False)
    assert_same_weights(ours.policy, theirs.policy, Policy.load(shown, device="cpu"))
    for mine, other in zip(ours.metrics, theirs.metrics, strict=True):
        assert mine["grad_norm"] > 0 and mine["turns"] > 1
        for name in ("reward/mean", "grad_norm", "tokens", "lr"):
            assert mine[name] == pytest.approx(other[name], rel=2e-3), name


def test_demonstrated_episodes_are_the_same_to_both_engines(shown, tmp_path):
    settings = {"policy": str(shown), "steps": 2, "prompts_per_step": 4, "eval_problems": 0}
    recipe = load_recipe("calculator_sft", device="cpu", **settings)
    ours = train_locally(recipe, tmp_path / "local", progress=False)
    theirs = trl_engine.train(recipe, tmp_path / "trl", progress=False)
    assert_same_weights(ours.policy, theirs.policy, Policy.load(shown, device="cpu"))
    assert ours.metrics[0]["tokens"] == theirs.metrics[0]["tokens"]


@pytest.mark.parametrize(
    ("changes", "settings", "sentence"),
    [
        ({"algorithm": "rloo"}, (), "TRL's rloo plays no episodes"),
        ({}, ("use_vllm=true",), "leave out use_vllm"),
    ],
)
def test_what_plays_no_episodes_is_refused(shown, tmp_path, changes, settings, sentence):
    with pytest.raises(UserError, match=sentence):
        trl_engine.train(
            small(shown, **changes), tmp_path / "run", settings=settings, progress=False
        )
    assert not (tmp_path / "run" / "policy").exists()


# Our environments as TRL's own


def calls(environment, *texts):
    return [environment.step(text) for text in texts]


def test_a_tool_environment_is_reset_stepped_and_paid():
    environment = ToolEnvironment(CalculatorEnvironment)
    with pytest.raises(UserError, match="call reset"):
        environment.step("1 + 1")
    row = {"question": "How many?", "answer": "12 * 17 = 204\n#### 204", "other": "column"}
    assert environment.reset(**row) == "How many?"
    assert calls(environment, "12 * 17", "let me see") == ["204", "?"]
    assert environment.get_reward() == 0
    assert calls(environment, "#### 204", "#### 204", "1 + 1") == [OVER] * 3
    assert environment.get_reward() == 1
    environment.reset(**row)
    assert environment.get_reward() == 0 and calls(environment, "#### 7") == [OVER]
    assert environment.get_reward() == 0




def test_trl_trains_a_random_model_in_our_environment(tmp_path, monkeypatch):
    """TRL calls `step` as a tool where a completion asks for it, and learns from the model's tokens.

    A random model never asks, so what it writes is replaced: half of the episodes call and answer.
    """
    from llamas import byte_tokenizer, random_model

    warnings.simplefilter("ignore")
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    tokenizer = byte_tokenizer()
    place = next(p for p in trl.__path__)
    with open(f"{place}/chat_templates/qwen3_training.jinja", encoding="utf-8") as file:
        tokenizer.chat_template = file.read()
    model = random_model(tokenizer)
    said = '<tool_call>\n{"name": "step", "arguments": {"text": "%s"}}\n</tool_call>'
    eos = tokenizer.eos_token_id
    seen: list[int] = []

    def written(self, prompt_ids, *unused):
        turn = len(seen)
        seen.append(len(prompt_ids))
        texts = [("#### 204" if turn % 2 else "12 * 17") if i % 2 else None for i in range(4)]
        texts = texts[: len(prompt_ids)]
        rows = [tokenizer.encode(said % t if t else "I do not know.") + [eos] for t in texts]
        return rows, None

    monkeypatch.setattr(trl.GRPOTrainer, "_generate_single_turn", written)
    row = {"prompt": [{"role": "user", "content": ""}]}
    row |= {"question": "How many?", "answer": "#### 204"}
    arguments = trl.GRPOConfig(
        output_dir=str(tmp_path),
        max_steps=2,
        per_device_train_batch_size=4,
        num_generations=4,
        max_completion_length=400,
        max_tool_calling_iterations=2,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        logging_steps=1,
        learning_rate=1e-3,
        disable_tqdm=True,
    )
    trainer = trl.GRPOTrainer(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_list([row] * 8),
        processing_class=tokenizer,
        environment_factory=lambda: ToolEnvironment(CalculatorEnvironment),
    )
    before = [p.detach().clone() for p in model.parameters()]
    trainer.train()
    logs = [log for log in trainer.state.log_history if "reward" in log]
    assert len(logs) == 2
    assert any((a != b).any() for a, b in zip(before, model.parameters(), strict=True))
    assert all(torch.isfinite(p).all() for p in model.parameters())
    print(logs)
