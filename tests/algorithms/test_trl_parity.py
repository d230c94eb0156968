"""The same numbers as TRL 1.16.0: losses with their gradients, advantages, KL and clip metrics.

TRL's losses are methods of its trainers. They are called on a bare instance that holds only the
attributes they read, with our log-probs in place of a model's.
"""

import ast
import inspect
import textwrap
from collections import defaultdict
from types import MethodType, SimpleNamespace

import pytest
import torch
from algorithm_cases import make_batch
from premises import drawn_until

from rlcourse.algorithms import (
    cispo_loss,
    dapo_loss,
    dr_grpo_loss,
    group_normalized_advantages,
    grpo_loss,
    gspo_loss,
    kl_estimates,
    leave_one_out_advantages,
    off_policy_loss,
    ppo_clip_loss,
    reinforce_loss,
)

trl = pytest.importorskip(
    "trl", reason="parity is measured against TRL; the extra `trl` is not installed"
)
if trl.__version__ != "1.16.0":
    pytest.skip(
        f"parity reads private methods of TRL 1.16.0, this is {trl.__version__}",
        allow_module_level=True,
    )


def bare_trainer(cls, logprobs, **attributes):
    """A `cls` without a model: its forward pass returns `logprobs`, its metrics are kept."""
    trainer = object.__new__(cls)
    same = lambda x, **_: x  # noqa: E731  one process: gathering changes nothing
    trainer.__dict__.update(
        accelerator=SimpleNamespace(
            gather=same, gather_for_metrics=same, reduce=same, num_processes=1, process_index=0
        ),
        model=SimpleNamespace(training=True),
        _metrics=defaultdict(lambda: defaultdict(list)),
        current_gradient_accumulation_steps=1,
        aux_loss_enabled=False,
        **{"epsilon_low": 0.2, "epsilon_high": 0.2} | attributes,
    )
    forward = lambda self, *_, **__: (logprobs, torch.zeros_like(logprobs), None)  # noqa: E731
    trainer._get_per_token_logps_and_entropies = MethodType(forward, trainer)
    return trainer


def inputs_of(batch, **more):
    tokens = torch.zeros_like(batch.mask, dtype=torch.long)
    mask = batch.mask.to(batch.logprobs.dtype)
    return dict(
        prompt_ids=tokens[:, :1], prompt_mask=tokens[:, :1] + 1,
        completion_ids=tokens, completion_mask=mask, advantages=batch.advantages, **more,
    )  # fmt: skip


def trl_grpo(batch, loss_type, beta=0.0, level="token", **attributes):
    """TRL's GRPO loss, its gradient and its metrics."""
    logprobs = batch.logprobs.clone().requires_grad_()
    trainer = bare_trainer(
        trl.GRPOTrainer, logprobs, loss_type=loss_type, beta=beta,
        importance_sampling_level=level, top_entropy_quantile=1.0,
        off_policy_mask_threshold=None, use_vllm=False, _entropy_bonus_enabled=False,
        args=SimpleNamespace(use_bias_correction_kl=False, delta=None, steps_per_generation=1),
        **attributes,
    )  # fmt: skip
    inputs = inputs_of(
        batch, old_per_token_logps=batch.old_logprobs, ref_per_token_logps=batch.ref_logprobs,
        num_items_in_batch=batch.mask.sum(),
    )  # fmt: skip
    loss = trl.GRPOTrainer._compute_loss(trainer, None, inputs)
    (gradient,) = torch.autograd.grad(loss, logprobs)
    metrics = {name: values[0] for name, values in trainer._metrics["train"].items()}
    return loss.detach(), gradient, metrics


def trl_rloo(batch):
    logprobs = batch.logprobs.clone().requires_grad_()
    trainer = bare_trainer(trl.RLOOTrainer, logprobs)
    old = (batch.old_logprobs * batch.mask).sum(1)
    loss = trl.RLOOTrainer._compute_loss(trainer, None, inputs_of(batch, old_logps=old))
    (gradient,) = torch.autograd.grad(loss, logprobs)
    return loss.detach(), gradient


def trl_advantages(cls, rewards, group_size):
    """The lines of TRL that turn rewards into advantages, run by themselves.

    They stand in the middle of a method that also samples: from the statement that first assigns
    `rewards` (or branches on how to combine them) to the one that clears NaNs.
    """
    module = inspect.getmodule(cls)
    source = textwrap.dedent(inspect.getsource(cls._generate_and_score_completions))
    body = ast.parse(source).body[0].body
    text = [ast.unparse(statement) for statement in body]
    first = next(i for i, s in enumerate(text) if "self.reward_weights" in s)
    last = next(i for i, s in enumerate(text) if s.startswith("advantages = torch.nan_to_num"))
    trainer = SimpleNamespace(
        multi_objective_aggregation="sum_then_normalize", reward_weights=torch.ones(1).to(rewards),
        scale_rewards="group", reward_clip_range=None, beta=0.0, normalize_advantages=False,
    )  # fmt: skip
    names = dict(
        vars(module), self=trainer, device=rewards.device, num_generations=group_size,
        rewards_per_func=rewards[:, None], unscorable_mask=rewards.isnan(),
    )  # fmt: skip
    exec("\n".join(text[first : last + 1]), names)
    return names["advantages"]


def ours(loss_fn, batch, *arguments, **options):
    logprobs = batch.logprobs.clone().requires_grad_()
    loss = loss_fn(logprobs, *arguments, **options)
    loss = loss[0] if isinstance(loss, tuple) else loss
    (gradient,) = torch.autograd.grad(loss, logprobs)
    return loss.detach(), gradient


def drawn_batch(seed):
    """Rows of different lengths, one of them empty."""
    return make_batch(seed, rows=6, width=6, lengths=[6, 5, 3, 1, 0, 4])


@pytest.fixture(params=range(3))
def batch(request):
    return drawn_batch(request.param)


@pytest.mark.parametrize("beta", [0.0, 0.04, 0.5])
def test_grpo_loss_is_trls_grpo(batch, beta):
    result = ours(grpo_loss, batch, batch.old_logprobs, batch.ref_logprobs, batch.advantages,
                  batch.mask, clip=0.2, beta=beta)  # fmt: skip
    torch.testing.assert_close(result, trl_grpo(batch, "grpo", beta)[:2], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("loss_type", ["bnpo", "dapo"])
def test_token_mean_is_trls_bnpo_and_dapo(batch, loss_type):
    result = ours(ppo_clip_loss, batch, batch.old_logprobs, batch.advantages, batch.mask)
    torch.testing.assert_close(result, trl_grpo(batch, loss_type)[:2], rtol=1e-12, atol=1e-14)


def test_clip_higher_is_trls_epsilon_high(batch):
    between = batch.logprobs.detach() - 0.3  # every ratio is 1.35, above 1.2 and below 1.5
    batch.advantages = batch.advantages.abs()  # only above 0 does the upper bound stop a token
    for old_logprobs in (batch.old_logprobs, between):
        batch.old_logprobs = old_logprobs
        args = (old_logprobs, batch.advantages, batch.mask)
        theirs = trl_grpo(batch, "dapo", epsilon_high=0.5)
        result = ours(dapo_loss, batch, *args, clip_high=0.5)
        torch.testing.assert_close(result, theirs[:2], rtol=1e-12, atol=1e-14)
    assert not torch.equal(theirs[1], trl_grpo(batch, "dapo")[1])


@pytest.mark.parametrize("cap", [1.1, 5.0])
def test_cispo_loss_is_trls_with_the_cap_as_epsilon_high(batch, cap):
    result = ours(cispo_loss, batch, batch.old_logprobs, batch.advantages, batch.mask, cap=cap)
    expected = trl_grpo(batch, "cispo", epsilon_high=cap)[:2]
    torch.testing.assert_close(result, expected, rtol=1e-12, atol=1e-14)


def test_dr_grpo_loss_is_trls(batch):
    result = ours(dr_grpo_loss, batch, batch.old_logprobs, batch.advantages, batch.mask, 9)
    expected = trl_grpo(batch, "dr_grpo", max_completion_length=9)[:2]
    torch.testing.assert_close(result, expected, rtol=1e-12, atol=1e-14)


def test_sequence_level_loss_is_trls_grpo_at_the_level_of_sequences(batch):
    """But for an empty completion, which a sampler never gives: TRL's mean counts its ratio, 1."""
    rows = batch.mask.any(1)
    for name in ("logprobs", "old_logprobs", "ref_logprobs", "advantages", "mask"):
        setattr(batch, name, getattr(batch, name)[rows])
    result = ours(gspo_loss, batch, batch.old_logprobs, batch.advantages, batch.mask)
    expected = trl_grpo(batch, "grpo", level="sequence")[:2]
    torch.testing.assert_close(result, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("first", range(3))
def test_clip_fraction_is_trls_region_mean(first):
    def theirs(batch):
        return trl_grpo(batch, "bnpo")[2]["clip_ratio/region_mean"]

    batch = drawn_until(
        lambda batch: theirs(batch) > 0,
        drawn_batch,
        "is a token clipped",
        seeds=range(first, first + 60, 3),
    )
    _, fraction = ppo_clip_loss(batch.logprobs, batch.old_logprobs, batch.advantages, batch.mask)
    assert fraction.item() == pytest.approx(theirs(batch))


def test_kl_is_trls_k3(batch):
    kl = kl_estimates(batch.logprobs, batch.ref_logprobs, "k3")[batch.mask].mean().item()
    assert kl == pytest.approx(trl_grpo(batch, "grpo", beta=0.04)[2]["kl"])


@pytest.mark.parametrize("group_size", [2, 4, 8])
def test_normalized_advantages_are_trls(group_size):
    rewards = torch.randn(16, generator=torch.Generator().manual_seed(group_size)).double()
    rewards[:group_size] = 0.5  # nothing to learn from this group
    # TRL's n/(n−1) is a float32 whatever the dtype of the rewards
    torch.testing.assert_close(
        group_normalized_advantages(rewards, group_size),
        trl_advantages(trl.GRPOTrainer, rewards, group_size), rtol=1e-7, atol=1e-12,
    )  # fmt: skip


@pytest.mark.parametrize("group_size", [2, 4, 8])
def test_leave_one_out_advantages_are_trls(group_size):
    rewards = torch.randn(16, generator=torch.Generator().manual_seed(group_size)).double()
    torch.testing.assert_close(
        leave_one_out_advantages(rewards, group_size),
        trl_advantages(trl.RLOOTrainer, rewards, group_size), rtol=1e-10, atol=1e-12,
    )  # fmt: skip


def test_reinforce_gradient_is_trls_rloo_on_policy(batch):
    batch.old_logprobs = batch.logprobs
    _, expected = trl_rloo(batch)
    for loss_fn, arguments in [
        (reinforce_loss, (batch.advantages, batch.mask)),
        (off_policy_loss, (batch.old_logprobs, batch.advantages, batch.mask)),
    ]:
        _, gradient = ours(loss_fn, batch, *arguments)
        torch.testing.assert_close(gradient, expected, rtol=1e-12, atol=1e-14)
