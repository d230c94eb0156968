"""What happens between TRL's steps: metrics under our names, checkpoints, stops, NaN.

TRL logs every optimizer step; a step of the recipe may hold several. Their mean is a line of
``metrics.jsonl``, with the names of the local engine wherever TRL measures the same.
"""

import time
from statistics import fmean

import torch
from transformers import TrainerCallback

from rlcourse.bars import bar
from rlcourse.signals import StopRequest
from rlcourse.training import run as local
from rlcourse.training.measuring.metrics import MetricsWriter
from rlcourse.training.networks.optimizer import require_finite
from rlcourse.training.recipes.settings import Recipe
from rlcourse.trl_engine.job import Job, updates_of
from rlcourse.trl_engine.rank_zero import held_out_accuracy

# TRL's name → ours. What TRL computes otherwise is left out, here (its reward_std is the spread of
# the batch, ours that within groups) or by the method's row.
NAMES = {"reward": "reward/mean", "clip_ratio/region_mean": "clip_ratio"}
SAME = ("loss", "grad_norm", "frac_reward_zero_std", "entropy", "kl")
SAME += tuple(f"rewards/{name}/mean" for name in ("correctness", "format", "length", "overlong"))
SAME += ("completions/mean_length", "completions/clipped_ratio")
NAMES |= dict(zip(SAME, SAME, strict=True))


def our_metrics(logs: list[dict], recipe: Recipe) -> dict[str, float]:
    """The logs of a step's updates as one dict under our names; the mean where several have it."""
    metrics = {}
    for theirs, ours in NAMES.items():
        values = [float(log[theirs]) for log in logs if log.get(theirs) is not None]
        if values and ours not in recipe.method.trl.otherwise:
            metrics[ours] = fmean(values)
    if "rewards/correctness/mean" in metrics:
        metrics["accuracy"] = metrics["rewards/correctness/mean"]
    if "rewards/overlong/mean" in metrics:  # ours is the reward before this penalty
        metrics["reward/mean"] -= metrics["rewards/overlong/mean"]
    return metrics


class Progress(TrainerCallback):
    """Writes a step's metrics in rank zero; says when to save and when to stop in all of them."""

    def __init__(self, job: Job, stop: StopRequest, unwrap):
        self.job, self.stop, self.unwrap = job, stop, unwrap
        self.recipe, self.updates = job.recipe, job.batches.updates
        self.stopped: str | None = None  # the signal that any process got
        self.logs: list[dict] = []  # of the updates of this step
        self.lr = self.started = 0.0
        self.saved_at = time.monotonic()  # the latest checkpoint, or the start
        saved = job.last_checkpoint()
        done = updates_of(saved) // self.updates if saved else 0
        self.writer = MetricsWriter(job.out, done) if job.processes.first else None
        silent = not (job.progress and job.processes.first)
        name, steps = self.recipe.algorithm, self.recipe.steps
        self.bar = bar(total=steps, initial=done, desc=name, unit="step", disable=silent)

    @property
    def history(self) -> list[dict]:
        """The metrics of all steps so far, those before a resume included."""
        return self.writer.history if self.writer else []

    def close(self) -> None:
        """End the progress bar and TensorBoard's file."""
        self.bar.close()
        if self.writer:
            self.writer.close()

    def on_step_begin(self, args, state, control, **unused):
        """Start the clock of a step of the recipe."""
        if state.global_step % self.updates == 0:
            self.logs, self.started = [], time.perf_counter()

    def on_pre_optimizer_step(self, args, state, control, optimizer=None, **unused):
        """Note the learning rate that is about to be used."""
        self.lr = optimizer.param_groups[0]["lr"]

    def on_step_end(self, args, state, control, **unused):
        """At the end of a step of the recipe: is it time to save, or to stop?"""
        done, rest = divmod(state.global_step, self.updates)
        if rest:
            return
        last = done == self.recipe.steps
        every, minutes = self.recipe.checkpoint_every, self.recipe.checkpoint_minutes
        late = minutes is not None and time.monotonic() - self.saved_at >= 60 * minutes
        # All save together, or wait for each other forever: rank zero's clock is everybody's.
        found = self.job.processes.gathered((self.stop.received, late))
        signals, late = [name for name, _ in found if name], found[0][1]
        if signals and not last:
            self.stopped = signals[0]
            control.should_training_stop = True
        counted = every and done % every == 0
        control.should_save = bool(last or self.stopped or counted or late)
        if control.should_save:
            self.saved_at = time.monotonic()

    def on_log(self, args, state, control, logs=None, model=None, processing_class=None, **unused):
        """Keep an update's log; with the last one of a step, write its metrics."""
        if "loss" not in logs:
            return  # the summary at the end
        done, rest = divmod(state.global_step, self.updates)
        losses, norms = (
            [torch.tensor(float(logs[name]))] if logs.get(name) is not None else []
            for name in ("loss", "grad_norm")
        )
        if losses or norms:
            require_finite(losses, norms, done - (not rest), self.recipe)
        self.logs.append(dict(logs))
        if rest or self.writer is None:
            return
        metrics = our_metrics(self.logs, self.recipe)
        seconds = time.perf_counter() - self.started
        rows = self.recipe.prompts_per_step * self.recipe.group_size
        tokens = round(metrics["completions/mean_length"] * rows)
        metrics |= {"step": done, "lr": self.lr, "seconds": seconds, "tokens": tokens}
        metrics["tokens_per_second"] = tokens / seconds
        if self.recipe.eval_every and done % self.recipe.eval_every == 0:
            metrics |= held_out_accuracy(self.job, self.unwrap(model), processing_class)
        self.writer.write(metrics)
        self.bar.set_postfix(local.shown_in_bar(metrics), refresh=False)
        self.bar.update()
