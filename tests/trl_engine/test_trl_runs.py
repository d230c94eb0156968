"""A run by TRL in one process: the local engine's weights, files, refusals, stops and resumes."""

import json
import os
import signal
from types import SimpleNamespace

import pytest
import torch
from echo import echo_policy, echo_recipe
from engines import (
    assert_equal_weights,
    assert_same_weights,
    digits_reward,
    local_completions,
    recipe_of,
    reward_digits,
    write_echo,
)

from rlcourse.errors import UserError
from rlcourse.policy import Policy
from rlcourse.signals import Interrupted
from rlcourse.training import load_recipe, load_run
from rlcourse.training import run as local
from rlcourse.training import train as train_locally
from rlcourse.training.data.batches import problems_of_step

trl = pytest.importorskip("trl", reason="the extra `trl` is not installed")

from rlcourse import trl_engine  # noqa: E402
from rlcourse.trl_engine.run import _checked  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    return write_echo(tmp_path_factory.mktemp("echo"))


def both(recipe, tmp_path):
    """The recipe trained by each engine."""
    ours = train_locally(recipe, tmp_path / "local", progress=False)
    return ours, trl_engine.train(recipe, tmp_path / "trl", progress=False)


def assert_same_metrics(ours, theirs, names):
    """The same of these, step by step; a metric that one engine lacks the other lacks, too."""
    for mine, other in zip(ours.metrics, theirs.metrics, strict=True):
        for name in names:
            assert (name in mine) == (name in other), name
            if name in mine:
                assert mine[name] == pytest.approx(other[name], rel=2e-3, abs=1e-6), name


# the same weights


@pytest.mark.parametrize(
    ("algorithm", "changes"),
    [
        ("grpo", {}),
        ("grpo", {"beta": 0.2, "num_iterations": 2, "clip": 0.02}),
        ("grpo", {"micro_batch": 4, "temperature": 0.8}),
        ("dr_grpo", {"num_iterations": 2, "clip": 0.02}),
        ("gspo", {"num_iterations": 2, "clip": 0.002}),
        ("rloo", {}),
        (
            "dapo",
            {
                "resample": None,
                "num_iterations": 2,
                "clip": 0.01,
                "clip_high": 0.03,
                "overlong_buffer": 4,
            },
        ),
    ],
)
def test_given_the_same_completions_both_engines_learn_the_same(
    algorithm, changes, places, tmp_path, monkeypatch
):
    reward_digits(monkeypatch)
    recipe = recipe_of(places, algorithm, **changes)
    base = trl.RLOOTrainer if algorithm == "rloo" else trl.GRPOTrainer
    generate = local_completions(recipe, local.task_of(recipe))
    monkeypatch.setattr(base, "_generate_single_turn", generate)
    ours, theirs = both(recipe, tmp_path)
    assert_same_weights(ours.policy, theirs.policy, echo_policy())
    names = ["lr", "grad_norm", "reward/mean", "frac_reward_zero_std", "tokens", "kl"]
    names += ["clip_ratio", "loss"] if algorithm in ("grpo", "dr_grpo") else []
    assert_same_metrics(ours, theirs, names)
    assert all(m["grad_norm"] > 0 for m in ours.metrics)
    if recipe.num_iterations > 1 and algorithm in ("grpo", "dr_grpo"):
        assert any(m["clip_ratio"] > 0 for m in ours.metrics)


def test_both_engines_start_from_the_same_warm_start(places, tmp_path):
    recipe = recipe_of(places, warm_start="sft", steps=1, lr=1e-12, eval_problems=10)
    first = tmp_path / "sft.yaml"
    first.write_text(
        "algorithm: sft\nsteps: 3\nprompts_per_step: 5\nlr: 1.0e-3\n", encoding="utf-8"
    )
    ours, theirs = both(recipe.but(warm_start=str(first)), tmp_path)
    assert_same_weights(ours.policy, theirs.policy, echo_policy())
    assert ours.before.sampled_accuracy == theirs.before.sampled_accuracy


def test_trl_samples_from_the_policys_own_distribution(places, tmp_path, monkeypatch):
    """Whatever the own settings of the model say, which here filter and penalize."""
    policy, temperature = echo_policy(), 0.5
    with torch.no_grad():
        policy.model.lm_head.weight *= 40  # from nearly uniform to peaked
    habits = {"do_sample": True, "top_k": 2, "repetition_penalty": 5.0, "min_p": 0.3}
    policy.model.generation_config.update(**habits)
    policy.save(tmp_path / "peaked")
    drawn = []
    monkeypatch.setattr(
        "rlcourse.trl_engine.rewards.correctness_reward",
        lambda texts, *unused: (drawn.extend(texts), torch.zeros(len(texts)))[1],
    )
    changes = {"prompts_per_step": 1, "group_size": 4000, "micro_batch": 1000}
    changes |= {"max_tokens": 1, "steps": 1}
    recipe = recipe_of(places | {"policy": str(tmp_path / "peaked")}, **changes)
    trl_engine.train(recipe.but(temperature=temperature), tmp_path / "out", progress=False)

    (problem,) = problems_of_step(local.task_of(recipe).train, 1, 0, recipe.seed)
    tokens, _ = policy.encode_prompts([policy.format_prompt(problem.question)])
    probabilities = (policy.model(tokens).logits[0, -1] / temperature).softmax(-1)
    visible = {policy.tokenizer.decode([i]): p.item() for i, p in enumerate(probabilities) if i > 2}
    for text, probability in visible.items():
        spread = (probability * (1 - probability) / len(drawn)) ** 0.5
        assert drawn.count(text) / len(drawn) == pytest.approx(probability, abs=5 * spread + 1e-4)


# the directory


@pytest.fixture(scope="module")
def finished(places, tmp_path_factory):
    """A run with everything on: evaluation before, on the way and after, checkpoints."""
    out = tmp_path_factory.mktemp("run") / "out"
    recipe = recipe_of(
        places,
        num_iterations=2,
        eval_problems=10,
        eval_every=2,
        checkpoint_every=2,
        rewards={"format": 0.1},
        lr=1e-3,
    )
    return trl_engine.train(recipe, out, progress=False)


def test_a_run_leaves_what_a_local_run_leaves(finished):
    out = finished.directory
    names = {path.name for path in out.iterdir()} - {"tensorboard", "evaluations", ".partial-lock"}
    assert {"recipe.yaml", "metrics.jsonl", "result.json", "report.html", "policy"} <= names
    assert not [name for name in names if name.startswith(".partial")]
    assert {path.name for path in (out / "checkpoints").iterdir()} == {
        "checkpoint-4",  # after two steps of two updates each
        "checkpoint-8",
    }
    result = json.loads((out / "result.json").read_text("utf-8"))
    assert result["engine"]["processes"] == 1
    assert result["engine"]["versions"]["trl"] == trl.__version__
    assert [m["step"] for m in finished.metrics] == [1, 2, 3, 4]
    assert ["eval/accuracy" in m for m in finished.metrics] == [False, True] * 2


def test_metrics_have_the_local_engines_names(finished, places, tmp_path):
    here = train_locally(finished.recipe, tmp_path / "local", progress=False)
    missing = set(here.metrics[-1]) - set(finished.metrics[-1])
    # TRL does not say the spread within groups, how far the policy moved, lengths by correctness,
    # the time in sampling, nor what finds faults in the local engine's own loop.
    allowed = {"reward/std", "kl_old", "seconds/sampling", "ratio/max", "kl_max", "loss_tokens"}
    allowed |= {"weights_changed", "advantages/equal_rewards"}
    apart = ("completions/", "frac_reward_zero_std_", "gap/", "clip_ratio/")
    assert {name for name in missing if not name.startswith(apart)} <= allowed
    assert set(finished.metrics[-1]) <= set(here.metrics[-1])


def test_adapters_are_merged_into_the_policy(places, tmp_path, monkeypatch):
    pytest.importorskip("peft", reason="the extra `lora` is not installed")
    reward_digits(monkeypatch)
    recipe = recipe_of(places, lora={"rank": 2}, lr=1e-2, eval_every=2)
    run = trl_engine.train(recipe, tmp_path / "out", progress=False)
    moved = dict(run.policy.named_parameters())
    start = dict(echo_policy().named_parameters())
    changed = {name for name, weight in start.items() if not torch.equal(weight, moved[name])}
    linear = {name for name in start if "proj" in name}
    assert moved.keys() == start.keys() and changed == linear


def test_a_finished_run_is_read_back(finished):
    again = trl_engine.train(finished.recipe, finished.directory, resume=True, progress=False)
    assert_equal_weights(again.policy, finished.policy)
    assert load_run(finished.directory).after.accuracy == finished.after.accuracy


# stops and resumes


def test_a_run_that_was_stopped_and_resumed_equals_one_that_was_not(places, tmp_path, monkeypatch):
    reward_digits(monkeypatch)
    recipe = recipe_of(places, num_iterations=2, checkpoint_every=1)
    whole = trl_engine.train(recipe, tmp_path / "whole", progress=False)

    calls = []

    def stop_in_the_second_step(*arguments):
        calls.append(1)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return digits_reward(*arguments)

    name = "rlcourse.trl_engine.rewards.correctness_reward"
    with monkeypatch.context() as patch:
        patch.setattr(name, stop_in_the_second_step)
        sentence = r"stopped by SIGTERM after step 2 of 4; .*--resume"
        with pytest.raises(Interrupted, match=sentence) as stopped:
            trl_engine.train(recipe, tmp_path / "out", progress=False)
    assert stopped.value.exit_code == 0 and len(stopped.value.run.metrics) == 2
    assert not (tmp_path / "out" / "result.json").exists()
    resumed = trl_engine.train(recipe, tmp_path / "out", resume=True, progress=False)
    assert_equal_weights(resumed.policy, whole.policy)
    timing = ("seconds", "tokens_per_second")
    for one, other in zip(resumed.metrics, whole.metrics, strict=True):
        assert {k: one[k] for k in one if k not in timing} == {
            k: other[k] for k in other if k not in timing
        }


def test_a_checkpoint_that_a_kill_cut_short_is_passed_over(places, tmp_path):
    recipe = recipe_of(places, checkpoint_every=1)
    run = trl_engine.train(recipe, tmp_path / "out", progress=False)
    (run.directory / "result.json").unlink()
    (run.directory / "checkpoints" / "checkpoint-4" / "trainer_state.json").unlink()
    again = trl_engine.train(recipe, run.directory, resume=True, progress=False)
    assert_equal_weights(again.policy, run.policy)


def test_a_loss_that_is_not_finite_ends_the_run(places, tmp_path, monkeypatch):
    compute = trl.GRPOTrainer._compute_loss
    broken = lambda self, *a: compute(self, *a) * (float("nan") if self._step else 1.0)  # noqa: E731
    monkeypatch.setattr(trl.GRPOTrainer, "_compute_loss", broken)
    recipe = recipe_of(places, checkpoint_every=1)
    with pytest.raises(UserError, match=r"loss is nan at step 2: lower lr .*checkpoint-1"):
        trl_engine.train(recipe, tmp_path / "out", progress=False)


# refusals


def test_each_engine_resumes_its_own_runs(places, tmp_path):
    recipe = recipe_of(places)
    here, there = tmp_path / "local", tmp_path / "trl"
    train_locally(recipe, here, progress=False)
    (here / "result.json").unlink()
    with pytest.raises(UserError, match="started by the local engine"):
        trl_engine.train(recipe, here, resume=True, progress=False)
    trl_engine.train(recipe, there, progress=False)
    trl_engine.require_local(there)  # finished: there is nothing to continue
    (there / "result.json").unlink()
    with pytest.raises(UserError, match="resume it with --engine trl"):
        trl_engine.require_local(there)


def test_other_settings_of_trls_are_refused_on_resume(places, tmp_path):
    recipe, setting = recipe_of(places), "max_grad_norm_is_not=1"
    with pytest.raises(UserError, match="has no 'max_grad_norm_is_not'"):
        trl_engine.train(recipe, tmp_path / "out", settings=[setting], progress=False)
    assert not (tmp_path / "out").exists()
    trl_engine.train(recipe, tmp_path / "out", settings=["log_completions=false"], progress=False)
    (tmp_path / "out" / "result.json").unlink()
    with pytest.raises(UserError, match="started with --trl log_completions=False"):
        trl_engine.train(recipe, tmp_path / "out", resume=True, progress=False)


@pytest.mark.parametrize(
    "launched",
    [
        {"ACCELERATE_USE_FSDP": "true"},
        {"ACCELERATE_USE_DEEPSPEED": "true", "ACCELERATE_DEEPSPEED_ZERO_STAGE": "3"},
    ],
)
def test_weights_that_are_shared_out_are_not_evaluated_on_the_way(launched, monkeypatch):
    for name, value in launched.items():
        monkeypatch.setenv(name, value)
    processes = SimpleNamespace(count=2, use_cpu=True)
    with pytest.raises(UserError, match="eval_every=0"):
        _checked(echo_recipe(eval_every=1), [], processes)
    assert _checked(echo_recipe(), [], processes) == {}


def test_a_false_start_leaves_nothing_behind(places, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(UserError, match="There is no model directory"):
        trl_engine.train(recipe_of(places, policy="./nowhere"), out, progress=False)
    with pytest.raises(UserError, match="this model reads at most 64"):
        trl_engine.train(recipe_of(places, max_tokens=63), out, progress=False)
    trl_engine.train(recipe_of(places, steps=1), out, progress=False)


def test_vllm_that_is_missing_is_one_sentence(places, tmp_path):
    with pytest.raises(UserError, match="TRL cannot start with these settings: vLLM is not"):
        trl_engine.train(
            recipe_of(places), tmp_path / "out", settings=["use_vllm=true"], progress=False
        )


def test_episodes_are_left_to_the_local_engine(tmp_path):
    with pytest.raises(UserError, match="TRL plays no episodes"):
        trl_engine.train(lambda: load_recipe("calculator_grpo"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_model_with_learned_positions_is_refused():
    from transformers import GPT2Config, GPT2LMHeadModel

    from rlcourse.trl_engine.trainers import require_no_sense_of_place

    rotary = echo_policy()
    require_no_sense_of_place(rotary)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=17, n_embd=16, n_layer=1, n_head=2, n_positions=64, bos_token_id=1,
        eos_token_id=1,
    )  # fmt: skip
    learned = Policy(GPT2LMHeadModel(config).eval(), rotary.tokenizer)
    with pytest.raises(UserError, match="GPT2LMHeadModel has learned positions"):
        require_no_sense_of_place(learned)


def test_dropout_is_off_wherever_a_model_keeps_it():
    from transformers import LlamaConfig, LlamaForCausalLM

    from rlcourse.trl_engine.trainers import switch_off_dropout

    config = LlamaConfig(
        vocab_size=9, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
        num_attention_heads=2, attention_dropout=0.5,
    )  # fmt: skip
    model = LlamaForCausalLM(config).train()
    tokens = torch.arange(6)[None]
    assert not torch.equal(model(tokens).logits, model(tokens).logits)
    switch_off_dropout(model)
    assert torch.equal(model(tokens).logits, model(tokens).logits)
