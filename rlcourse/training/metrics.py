"""What a step reports, and the one writer that keeps it: a JSON line a step, and TensorBoard."""

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from rlcourse.algorithms import kl_estimates, masked_mean
from rlcourse.files import sync, write_errors_explained, write_text
from rlcourse.policy.rollouts import Rollouts, truncated
from rlcourse.reports.record import read_metrics


@torch.no_grad()
def rollout_metrics(
    rollouts: Rollouts, rewards: dict[str, Tensor], eos_ids: Sequence[int]
) -> dict[str, float]:
    """Facts about a step's rows before any update; `rewards` are the reward's parts, (N,) each.

    ``entropy`` is −log πθ averaged over the sampled tokens (nats per token): an unbiased estimate
    of the policy's mean entropy along its own completions that costs no forward pass.
    ``completions/mean_length_right`` and ``_wrong`` (tokens) are absent where there are none.
    """
    lengths = rollouts.mask.sum(1)
    metrics: dict[str, float] = {"tokens": int(lengths.sum())}
    if not rewards or rollouts.rewards is None:
        return metrics
    metrics["reward/mean"] = rollouts.rewards.mean().item()
    spread = rollouts.rewards.reshape(-1, rollouts.group_size)
    metrics["reward/std"] = spread.std(1, correction=0).mean().item()
    metrics["frac_reward_zero_std"] = (spread == spread[:, :1]).all(1).float().mean().item()
    metrics["accuracy"] = rewards["correctness"].mean().item()
    for name, part in rewards.items():
        metrics[f"rewards/{name}/mean"] = part.mean().item()
    metrics["completions/mean_length"] = lengths.float().mean().item()
    right = (rewards["correctness"] > 0).to(lengths.device)
    for name, rows in (("right", right), ("wrong", ~right)):
        if rows.any():
            mean = lengths[rows].float().mean().item()
            metrics[f"completions/mean_length_{name}"] = mean
    metrics["completions/clipped_ratio"] = truncated(rollouts, eos_ids).float().mean().item()
    metrics["entropy"] = -masked_mean(rollouts.old_logprobs, rollouts.mask).item()
    return metrics


@torch.no_grad()
def update_metrics(
    loss: Tensor, norm: Tensor, logprobs: Tensor, batch: Rollouts, recipe, clip_fraction=None
) -> dict[str, float]:
    """Facts about one optimizer step.

    ``clip_ratio`` is the fraction of tokens whose gradient the clip stops, ``kl_old`` the k3
    estimate of how far the policy has moved since it sampled, ``kl`` that of its distance from the
    reference (nats per token).
    """
    metrics = {"loss": loss.item(), "grad_norm": norm.item()}
    if recipe.method.imitates:
        return metrics
    if recipe.num_iterations * recipe.minibatches > 1:
        # The tokens were sampled by πold, so it stands in the first place: KL(πold‖πθ).
        moved = kl_estimates(batch.old_logprobs, logprobs, "k3")
        metrics["kl_old"] = masked_mean(moved, batch.mask).item()
        if clip_fraction is None:
            advantages = batch.advantages
            assert advantages is not None
            advantages = advantages if advantages.ndim == 2 else advantages[:, None]
            log_ratio = logprobs - batch.old_logprobs
            if recipe.method.sequence_ratio:
                log_ratio = masked_mean(log_ratio, batch.mask, dim=1)[:, None].expand_as(log_ratio)
            ratio = log_ratio.exp()
            above = (advantages > 0) & (ratio > 1 + (recipe.clip_high or recipe.clip))
            below = (advantages < 0) & (ratio < 1 - recipe.clip)
            clip_fraction = masked_mean((above | below).to(ratio.dtype), batch.mask)
    metrics["clip_ratio"] = float(clip_fraction or 0.0)
    if batch.ref_logprobs is not None:
        metrics["kl"] = masked_mean(
            kl_estimates(logprobs, batch.ref_logprobs, "k3"), batch.mask
        ).item()
    return metrics


def nothing_to_learn_from(history: Sequence[dict]) -> str | None:
    """What to say of a run in which no step had a gradient, as when every answer is wrong."""
    # A step of the user's own reports a loss alone; one without any row left reports neither.
    if any(metrics.get("grad_norm", "loss" in metrics) for metrics in history):
        return None
    rewards = [metrics["reward/mean"] for metrics in history if "reward/mean" in metrics]
    seen = f", and the mean reward was {sum(rewards) / len(rewards):.2f}" if rewards else ""
    return (
        f"nothing was learned: no step had a gradient{seen}. Read some completions in the report: "
        "is the task too hard, max_tokens too small, or is no answer ever read as right?"
    )


class MetricsWriter:
    """Appends each step's metrics to ``metrics.jsonl`` and, where it is installed, TensorBoard.

    Steps after `first_step`, left by a run that was killed, are cut away first. With `directory`
    None nothing is written.
    """

    def __init__(self, directory: Path | None, first_step: int = 0):
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
        """Have on disk what is written, before a checkpoint says that these steps are done."""
        if self.path is not None and self.path.exists():
            with write_errors_explained(self.path):
                sync(self.path)

    def close(self) -> None:
        """Flush TensorBoard's file."""
        if self.board is not None and self.path is not None:
            with write_errors_explained(self.path):
                self.board.close()


def _line(metrics: dict) -> str:
    return json.dumps(metrics) + "\n"
