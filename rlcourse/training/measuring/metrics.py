"""What a step reports, and what writes it: a line of JSON for each step, and TensorBoard."""

import importlib
import inspect
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rlcourse.algorithms import kl_estimates, masked_mean
from rlcourse.errors import UserError
from rlcourse.files import sync, write_errors_explained, write_text
from rlcourse.policy.rollouts import Rollouts, truncated
from rlcourse.reports.run_record import read_metrics
from rlcourse.training.recipes.methods import Method, resolved

# Scalars stay on their device until the step is over: there `numbers` reads them all at once.
Metrics = dict[str, float | Tensor]


@torch.no_grad()
def rollout_metrics(
    rollouts: Rollouts, rewards: dict[str, Tensor], eos_ids: Sequence[int]
) -> Metrics:
    """Facts about a step's rows before any update; `rewards` are the reward's parts, (N,) each.

    ``entropy`` is −log πθ averaged over the sampled tokens (nats per token): an unbiased estimate
    of the policy's mean entropy along its own completions that costs no forward pass.
    ``frac_reward_zero_std`` is the share of groups whose rewards are equal, and ``…_expected`` what
    it would be if every question were as hard as their mean (a lower bound, by convexity): absent
    where there are more than two rewards. ``turns`` are the policy's in an episode, where it
    plays some. ``completions/mean_length_right`` and ``_wrong`` (tokens)
    are NaN if there are none, and then not reported.
    """
    lengths = rollouts.mask.sum(1)
    metrics: Metrics = {"tokens": lengths.sum()}
    if not rewards or rollouts.rewards is None:
        return metrics
    metrics["reward/mean"] = rollouts.rewards.mean()
    if rollouts.group_size > 1:
        metrics |= group_metrics(rollouts.rewards, rollouts.group_size)
    metrics["accuracy"] = rewards["correctness"].mean()
    for name, part in rewards.items():
        metrics[f"rewards/{name}/mean"] = part.mean()
    metrics["completions/mean_length"] = lengths.float().mean()
    right = (rewards["correctness"] > 0).to(lengths.device)
    for name, rows in (("right", right), ("wrong", ~right)):
        metrics[f"completions/mean_length_{name}"] = (lengths * rows).sum() / rows.sum()
    metrics["completions/clipped_ratio"] = truncated(rollouts, eos_ids).float().mean()
    metrics["entropy"] = -masked_mean(rollouts.old_logprobs, rollouts.mask)
    if rollouts.read_mask is not None:
        wrote = rollouts.mask.int()
        metrics["turns"] = (wrote[:, 0] + (wrote.diff(dim=1) > 0).sum(1)).float().mean()
    return metrics


def group_metrics(rewards: Tensor, group_size: int) -> Metrics:
    """What the groups of a step have to say; a group of one has nothing."""
    spread = rewards.reshape(-1, group_size)
    metrics: Metrics = {"reward/std": spread.std(1, correction=0).mean()}
    metrics["frac_reward_zero_std"] = (spread == spread[:, :1]).all(1).float().mean()
    best, worst = spread.max(), spread.min()
    high = (spread == best).float().mean()
    predicted = high**group_size + (1 - high) ** group_size
    two = ((spread == best) | (spread == worst)).all()
    metrics["frac_reward_zero_std_expected"] = torch.where(two, predicted, torch.nan)
    return metrics


@torch.no_grad()
def advantage_metrics(rollouts: Rollouts, method: Method) -> Metrics:
    """``advantages/equal_rewards``: mean |advantage| in groups of equal rewards, which is 0 as long
    as a completion is compared with those of its own question. Where the tokens of a completion
    have advantages of their own, equal rewards do not say that they are 0: then there is none."""
    rewards, advantages = rollouts.rewards, rollouts.advantages
    if not method.compares_groups or rewards is None or advantages is None:
        return {}
    if advantages.ndim == 2 and ((advantages != advantages[:, :1]) & rollouts.mask).any():
        return {}
    groups = rewards.reshape(-1, rollouts.group_size)
    silent = (groups == groups[:, :1]).all(1).repeat_interleave(rollouts.group_size)
    size = advantages.abs() if advantages.ndim == 1 else advantages.abs().mean(1)
    return {"advantages/equal_rewards": (size * silent).sum() / silent.sum().clamp(min=1)}


@torch.no_grad()
def first_metrics(
    logprobs: Tensor, batch: Rollouts, rows: Tensor, learned: Tensor, eos_ids: Sequence[int]
) -> Metrics:
    """What a step's first update shows, when the policy is still the one that sampled.

    ``gap/mean`` and ``gap/max`` are |log πθ of the trainer − of the sampler| over the tokens of the
    `rows` (n,) that were read, in nats: rounding, unless the two disagree on weights, temperature
    or position. ``loss_tokens`` is the number of tokens that the loss gives a gradient, `learned`
    (n, T), per token that was written, in completions with an advantage (in others a KL penalty
    pulls here and there by rounding): 1, unless the mask is wrong. Where advantages are those of
    tokens, tokens whose advantage is 0 are not counted.
    """
    read = batch.mask & rows[:, None]
    drawn = batch.old_logprobs if batch.sampler_logprobs is None else batch.sampler_logprobs
    gap = (logprobs - drawn).abs().masked_fill(~read, 0.0)
    metrics: Metrics = {"gap/mean": masked_mean(gap, read), "gap/max": gap.max()}
    ended = torch.isin(batch.tokens, torch.tensor(list(eos_ids), device=batch.tokens.device)).long()
    # An EOS ends a turn and not an episode, whose mask says who wrote what.
    real = ended.cumsum(1) - ended == 0 if batch.read_mask is None else batch.mask
    counts = learned.any(1, keepdim=True)
    if batch.advantages is not None:
        given = batch.advantages.reshape(len(batch), -1).ne(0)
        counts = counts & given.any(1, keepdim=True) & (given | ~real)
    # NaN if no row has a gradient, or if the loss reached the policy in another way
    metrics["loss_tokens"] = (learned & counts).sum() / (real & counts).sum()
    return metrics


@torch.no_grad()
def update_metrics(
    loss: Tensor, norm: Tensor, logprobs: Tensor, batch: Rollouts, recipe, method: Method, clipped
) -> Metrics:
    """Facts about one optimizer step; `clipped` is the clip fraction, if the loss returned it.

    ``clip_ratio/high`` and ``/low`` are the fractions of tokens whose gradient a clip at the band's
    upper and lower end stops, and ``clip_ratio`` what the loss says, or else their sum.
    ``ratio/max`` is the largest πθ/πold of a token. ``kl_old`` is the k3 estimate of how far the
    policy has moved since it sampled, ``kl`` that of its distance from the reference (nats per
    token), and ``kl_max`` its largest token.
    """
    metrics: Metrics = {"loss": loss, "grad_norm": norm}
    if recipe.method.imitates:
        return metrics
    log_ratio = (logprobs - batch.old_logprobs).masked_fill(~batch.mask, 0.0)
    metrics["ratio/max"] = log_ratio.max().clamp(max=80.0).exp()
    if recipe.num_iterations * recipe.minibatches > 1 or recipe.sampler_staleness:
        # The tokens were sampled by πold, so it comes first: KL(πold‖πθ).
        moved = kl_estimates(batch.old_logprobs, logprobs, "k3")
        metrics["kl_old"] = masked_mean(moved, batch.mask)
    ends = clip_fractions(log_ratio, batch, clip_band(recipe, method), method.sequence_ratio)
    metrics |= ends
    metrics["clip_ratio"] = sum(ends.values()) if clipped is None else clipped
    if batch.ref_logprobs is not None:
        divergence = kl_estimates(logprobs, batch.ref_logprobs, "k3")
        metrics["kl"] = masked_mean(divergence, batch.mask)
        metrics["kl_max"] = (divergence * batch.mask).max()
    return metrics


def clip_band(recipe, method: Method) -> tuple[float, float] | None:
    """How far below and above 1 a ratio may go, given what the loss asks for; None: no clip."""
    asked, settings = inspect.signature(resolved(method.loss)).parameters, recipe.arguments()
    if not {"clip", "clip_low", "clip_high"} & set(asked):
        return None
    return settings["clip"], settings["clip_high" if "clip_high" in asked else "clip"]


def stopped(logprobs: Tensor, batch: Rollouts, recipe, method: Method) -> Tensor:
    """Which tokens (n, T) have no gradient because of the clip, not because of the mask."""
    log_ratio = (logprobs - batch.old_logprobs).masked_fill(~batch.mask, 0.0)
    ends = clip_ends(log_ratio, batch, clip_band(recipe, method), method.sequence_ratio)
    return (ends[0] | ends[1]) & batch.mask if ends else torch.zeros_like(batch.mask)


def clip_fractions(log_ratio: Tensor, batch: Rollouts, band, by_sequence: bool) -> Metrics:
    """The fractions of tokens that a clip to `band` stops, at its two ends."""
    found: Metrics = {}
    ends = clip_ends(log_ratio, batch, band, by_sequence)
    for end, tokens in zip(("low", "high"), ends, strict=False):  # none where it never clips
        found[f"clip_ratio/{end}"] = masked_mean(tokens.to(log_ratio.dtype), batch.mask)
    return found


def clip_ends(log_ratio: Tensor, batch: Rollouts, band, by_sequence: bool) -> tuple[Tensor, ...]:
    """Which tokens (n, T) a clip to `band` stops, below and above; () without a band."""
    if band is None or batch.advantages is None:
        return ()
    advantages = batch.advantages if batch.advantages.ndim == 2 else batch.advantages[:, None]
    if by_sequence:
        log_ratio = masked_mean(log_ratio, batch.mask, dim=1)[:, None].expand_as(log_ratio)
    ratio, (low, high) = log_ratio.exp(), band
    return (advantages < 0) & (ratio < 1 - low), (advantages > 0) & (ratio > 1 + high)


class WeightSample:
    """Some weights of each trained tensor of a network, to see whether an update moves them."""

    def __init__(self, network: nn.Module, each: int = 256):
        self._tensors = [p for p in network.parameters() if p.requires_grad]
        self._each = each
        self._before = self._read()

    @torch.no_grad()
    def _read(self) -> Tensor:
        some = [p.flatten()[:: max(1, p.numel() // self._each)] for p in self._tensors]
        return torch.cat([weights.float() for weights in some])

    def changed(self) -> Tensor:
        """The share of them that has changed since the last call."""
        before, self._before = self._before, self._read()
        return (before != self._before).float().mean()


def over_updates(updates: Sequence[Metrics]) -> Metrics:
    """The metrics of a step's updates as one: largest values of ``…max``, means of the others.

    Metrics of the first update alone (see `first_metrics`) are left as they are.
    """
    several: dict[str, list] = {}
    for facts in updates:
        for name, value in facts.items():
            several.setdefault(name, []).append(torch.as_tensor(value).float())
    return {
        name: torch.stack(values).max() if name.endswith("max") else torch.stack(values).mean()
        for name, values in several.items()
    }


def numbers(metrics: Metrics) -> dict[str, float]:
    """Plain numbers, with one read per device, and without those that are NaN because there was
    nothing to count."""
    found = {name: value for name, value in metrics.items() if not isinstance(value, Tensor)}
    tensors = {name: value for name, value in metrics.items() if isinstance(value, Tensor)}
    for device in {value.device for value in tensors.values()}:
        there = {name: value for name, value in tensors.items() if value.device == device}
        kind = torch.float32 if device.type == "mps" else torch.float64
        read = torch.stack([value.detach().to(kind) for value in there.values()]).tolist()
        found |= dict(zip(there, read, strict=True))
    counted = ("completions/mean_length_", "frac_reward_zero_std_", "loss_tokens")
    return {
        name: found[name]
        for name in metrics
        if not (name.startswith(counted) and math.isnan(found[name]))
    }


def nothing_to_learn_from(history: Sequence[dict]) -> str | None:
    """The warning about a run in which no step had a gradient, as when every answer is wrong."""
    # A step of the user's own reports a loss alone; one without any row left reports neither.
    if any(metrics.get("grad_norm", "loss" in metrics) for metrics in history):
        return None
    rewards = [metrics["reward/mean"] for metrics in history if "reward/mean" in metrics]
    seen = f", and the mean reward was {sum(rewards) / len(rewards):.2f}" if rewards else ""
    return (
        f"nothing was learned: no step had a gradient{seen}. Read some completions in the report: "
        "is the task too hard, is max_tokens too small, or is no answer ever recognized as right?"
    )


def tracker_named(name: str) -> Any:
    """The module `name`, which is trackio or wandb: they have one interface.

    Raises ``UserError`` where the package is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        raise UserError(f"--tracker {name} needs a package: pip install {name}") from None


class MetricsWriter:
    """Appends each step's metrics to ``metrics.jsonl`` and, where it is installed, TensorBoard.

    Steps after `first_step`, left by a run that was killed, are cut away first. With `directory`
    None nothing is written. A `tracker` is the module trackio or wandb, in which a run has begun:
    it is told every step as well.
    """

    def __init__(self, directory: Path | None, first_step: int = 0, tracker: Any = None):
        self.tracker = tracker
        self.path: Path | None = None
        self.history: list[dict] = []
        self.board = None
        if directory is None:
            return
        self.path = directory / "metrics.jsonl"
        if self.path.exists():
            self.history = [m for m in read_metrics(self.path) if m["step"] <= first_step]
        write_text(self.path, "".join(_line(metrics) for metrics in self.history))
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return
        with write_errors_explained(directory):
            self.board = SummaryWriter(directory / "tensorboard", purge_step=first_step + 1)

    def write(self, metrics: dict) -> None:
        """Keep one step's metrics. Raises ``UserError`` on a full disk."""
        metrics = {name: float(f"{value:.6g}") for name, value in metrics.items()}
        metrics |= {name: int(metrics[name]) for name in ("step", "tokens")}
        self.history.append(metrics)
        if self.tracker is not None:
            told = {name: value for name, value in metrics.items() if name != "step"}
            self.tracker.log(told, step=metrics["step"])
        if self.path is None:
            return
        with write_errors_explained(self.path):
            with self.path.open("a", encoding="utf-8") as file:
                file.write(_line(metrics))
            if self.board is not None:
                for name, value in metrics.items():
                    if name != "step":
                        self.board.add_scalar(name, value, metrics["step"])

    def sync(self) -> None:
        """Flush what is written to disk, before a checkpoint says that these steps are done."""
        if self.path is not None and self.path.exists():
            with write_errors_explained(self.path):
                sync(self.path)

    def close(self) -> None:
        """Flush TensorBoard's file, and end the tracker's run."""
        if self.tracker is not None:
            self.tracker.finish()
        if self.board is not None and self.path is not None:
            with write_errors_explained(self.path):
                self.board.close()


def _line(metrics: dict) -> str:
    return json.dumps(metrics) + "\n"
