"""Recipes whose task is played in turns: what is read, learned, paid, taught, resumed, refused."""

from dataclasses import replace

import pytest
import torch
from echo import echo_policy, echo_recipe, echo_task, quiet, weights

from rlcourse.errors import UserError
from rlcourse.evaluation import evaluate_policy
from rlcourse.policy import Policy
from rlcourse.policy.rollouts import truncated
from rlcourse.policy.turns import World
from rlcourse.seeds import derived_generator
from rlcourse.tasks import CalculatorEnvironment, load_task
from rlcourse.training import load_recipe
from rlcourse.training.data.scoring import sampled, world_of
from rlcourse.training.networks.forward import shared_prompt_logprobs

SMALL = {"steps": 4, "prompts_per_step": 2, "group_size": 3, "eval_problems": 4, "device": "cpu"}
SMALL |= {"eval_samples": 2, "checkpoint_every": 2, "warm_start": None}


@pytest.fixture(scope="module")
def policy():
    """A few steps of imitation: it calls now and then, and is hardly ever right."""
    recipe = load_recipe("calculator_sft", steps=12, eval_problems=0, device="cpu")
    return quiet(recipe).policy


@pytest.fixture(scope="module")
def task():
    return load_task("calculator", evaluation_size=8)


def by_length(self, text):
    """Paid is what a beginner earns now and then."""
    reply = CalculatorEnvironment.respond(self, text)
    return reply._replace(reward=float(len(text) % 3 == 0))


@pytest.fixture
def generous(task):
    kind = type("Generous", (CalculatorEnvironment,), {"respond": by_length})
    return replace(task, environment=kind)


def batch_of(policy, task, n=3, **changes):
    recipe = load_recipe("calculator_grpo", **(SMALL | changes))
    generator = derived_generator(policy.device, 0, "step", 0)
    return sampled(policy, task.train[:n], recipe, generator, world_of(recipe, task))


@pytest.mark.slow
def test_a_batch_of_episodes_is_read_whole_and_scored_as_it_was_drawn(policy, task):
    batch = batch_of(policy, task)
    assert (batch.read_mask & ~batch.mask).any() and not (batch.mask & ~batch.read_mask).any()
    with torch.no_grad():
        plain, shared = policy.logprobs(batch), shared_prompt_logprobs(policy, batch)
    torch.testing.assert_close(plain[batch.mask], batch.old_logprobs[batch.mask], atol=1e-4, rtol=0)
    torch.testing.assert_close(shared, plain, atol=1e-5, rtol=0)
    assert not batch.old_logprobs[~batch.mask].any()


def test_what_ends_an_episode_is_the_end_of_its_last_turn(policy, task):
    cut, whole = batch_of(policy, task, max_tokens=2), batch_of(policy, task, max_tokens=16)
    assert truncated(cut, policy.eos_ids).all()  # no turn of two tokens ends
    assert not truncated(whole, policy.eos_ids).all()
    first = whole.rows(slice(0, 1))
    (last,) = first.mask[0].nonzero()[-1]
    tokens = first.tokens.clone()
    tokens[0, last] = (policy.eos_ids[0] + 1) % 100
    assert truncated(replace(first, tokens=tokens), policy.eos_ids).all()


@pytest.mark.parametrize("algorithm", ["grpo", "dapo", "gspo", "rloo", "distill", "cispo"])
def test_methods_learn_alike_from_episodes_with_any_micro_batch(algorithm, policy, generous):
    changes = {"algorithm": algorithm, "steps": 2, "eval_problems": 0}
    changes |= {"teacher": "(passed in)"} if algorithm == "distill" else {}
    options = {"policy": policy, "task": generous}
    options |= {"teacher": Policy.load("tiny", device="cpu")} if algorithm == "distill" else {}
    start, ends = weights(policy), []
    for size in (None, 2):
        recipe = load_recipe("calculator_grpo", **(SMALL | changes), micro_batch=size)
        run = quiet(recipe, **options)
        ends.append(weights(run.policy))
        assert run.metrics[0]["gap/mean"] < 1e-4
        assert run.metrics[0].get("loss_tokens", 1.0) == pytest.approx(1.0)
        assert run.metrics[0]["turns"] > 1
    moved = (ends[0] - start).norm()
    assert moved > 0 and (ends[1] - ends[0]).norm() < 0.02 * moved  # AdamW makes much of rounding


def test_a_run_in_an_environment_resumes_exactly(policy, generous, tmp_path):
    recipe = load_recipe("calculator_grpo", **SMALL)
    options = {"policy": policy, "task": generous}
    whole = quiet(recipe, tmp_path / "run", **options)
    (tmp_path / "run" / "result.json").unlink()
    for left in (tmp_path / "run" / "checkpoints").glob("step-000004"):
        left.rename(tmp_path / "away")
    again = quiet(recipe, tmp_path / "run", resume=True, **options)
    assert torch.equal(weights(whole.policy), weights(again.policy))
    assert [m["loss"] for m in again.metrics] == [m["loss"] for m in whole.metrics]
    assert "Turns" in (tmp_path / "run" / "report.html").read_text("utf-8")


def test_an_evaluation_in_turns_is_judged_by_what_was_paid(policy, task):
    def right_or_wrong(reward):
        class Pays(CalculatorEnvironment):
            def respond(self, text):
                return super().respond(text)._replace(reward=reward, done=True)

        return World(Pays, 3)

    for reward in (1.0, 0.0):
        found = evaluate_policy(policy, task.evaluation[:3], 2, world=right_or_wrong(reward))
        assert found.accuracy.value == found.sampled_accuracy.value == reward
    several = evaluate_policy(policy, task.evaluation[:3], 2, world=World(CalculatorEnvironment, 3))
    assert any("→" in t.greedy.text for t in several.transcripts)


# A teacher


def test_distillation_brings_the_student_to_its_teacher(warm):
    student, teacher = echo_policy(1), warm
    recipe = echo_recipe("distill", steps=40, lr=1e-2, eval_problems=0, prompts_per_step=10)
    run = quiet(recipe, policy=student, task=echo_task(), teacher=teacher)
    first, last = run.metrics[0]["kl_teacher"], run.metrics[-1]["kl_teacher"]
    assert last < 0.7 * first  # .38 to .49 of it on five seeds


def test_a_recipe_makes_the_teacher_once(policy, generous, tmp_path):
    taught = tmp_path / "teacher.yaml"
    taught.write_text(load_recipe("calculator_grpo", **(SMALL | {"steps": 1})).to_yaml())
    recipe = load_recipe("calculator_distill", **(SMALL | {"steps": 2, "group_size": 1}))
    recipe = recipe.but(teacher=str(taught))
    out = tmp_path / "run"
    options = {"policy": policy, "task": generous}
    run = quiet(recipe, out, **options)
    made = (out / "teacher" / "policy" / "model.safetensors").read_bytes()
    (out / "result.json").unlink()
    quiet(recipe, out, resume=True, **options)
    assert (out / "teacher" / "policy" / "model.safetensors").read_bytes() == made
    assert "kl_teacher" in run.metrics[0]


@pytest.mark.parametrize(
    ("recipe", "changes", "sentence"),
    [
        ("ppo", {}, "ppo has a critic"),
        ("dpo", {}, "dpo compares completions"),
        ("grpo", {"rewards": {"format": 0.2}}, "remove rewards.format"),
        ("grpo", {"extract": "tagged"}, "remove extract"),
        ("grpo", {"fault": "dropout"}, "fault is about single completions"),
        ("dapo", {"overlong_buffer": 4}, "overlong_buffer is about single"),
    ],
)
def test_what_has_no_meaning_in_an_environment_is_refused(recipe, changes, sentence, tmp_path):
    settings = load_recipe(recipe, task="calculator", warm_start=None, device="cpu", **changes)
    with pytest.raises(UserError, match=sentence):
        quiet(settings, tmp_path / "run")
    assert not (tmp_path / "run" / "recipe.yaml").exists()


def test_wrong_teachers_are_refused(policy, task, tmp_path):
    recipe = load_recipe("calculator_distill", **(SMALL | {"group_size": 1}))
    options = {"policy": policy, "task": task}
    with pytest.raises(UserError, match="another tokenizer"):
        quiet(recipe, teacher=echo_policy(), **options)
    with pytest.raises(UserError, match="makes no teacher"):
        quiet(recipe.but(teacher="reward_model"), **options)
    with pytest.raises(UserError, match="grpo has no teacher"):
        quiet(load_recipe("calculator_grpo", **SMALL), teacher=policy, **options)
