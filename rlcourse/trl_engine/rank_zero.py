"""What rank zero does for all, with the local engine's code, while the others wait for it.

Before training: the warm start, the evaluation, the pairs. On the way: held-out accuracy. After it:
evaluation, report, result.
"""

import json
import shutil
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import torch

from rlcourse.evaluation import Evaluation
from rlcourse.files import write_json
from rlcourse.policy import Policy
from rlcourse.training import run as local
from rlcourse.training.measuring.evaluating import evaluation_of, held_out_metrics
from rlcourse.training.networks.value_head import RewardModel
from rlcourse.training.preferences.learner import pair_accuracy
from rlcourse.training.preferences.pairs import Pair, held_out_pairs, training_pairs
from rlcourse.training.runs.outcome import Run
from rlcourse.training.runs.run_directory import begin
from rlcourse.trl_engine.directory import ENGINE_FILE
from rlcourse.trl_engine.job import Job


@dataclass(frozen=True)
class Start:
    """What was found before training."""

    before: Evaluation | None
    held_out: list[Pair]  # where a reward model is trained


def before_training(job: Job, resume: bool) -> Start:
    """Run the warm start, evaluate, sample the pairs. The files are there for all processes."""
    recipe, task = job.recipe, job.task
    policy = local.starting_policy(recipe, job.out, task, resume, job.progress).eval()
    local.check_prompts_fit(policy, task, recipe)
    begin(job.out, recipe)
    facts = {"engine": "trl", "processes": job.processes.count, "settings": job.settings}
    write_json(job.out / ENGINE_FILE, facts)
    before = evaluation_of(policy, recipe, task, job.out, "before", job.progress)
    held_out = []
    if job.method.compares_pairs:
        training_pairs(policy, recipe, task, job.method, None, job.out, job.progress)
    if not job.method.trains_policy:
        held_out = held_out_pairs(policy, recipe, task, job.method)
    del policy
    torch.cuda.empty_cache()  # the trainer wants it
    return Start(before, held_out)


def held_out_accuracy(job: Job, start: Start, model, tokenizer) -> dict[str, float]:
    """How good `model`, as it is now, is on held-out problems or pairs; as a metric."""
    accuracy = None
    if not job.method.trains_policy:
        scored = RewardModel(model, tokenizer)
        accuracy = partial(pair_accuracy, scored, start.held_out, job.recipe, job.method)
    model = model.get_base_model() if job.recipe.lora else model
    return held_out_metrics(Policy(model, tokenizer), job.recipe, job.task, accuracy)


def after_training(job: Job, run: Run, start: Start, trained: Path) -> Run:
    """Evaluate what TRL left in the directory `trained`; write policy, report and result."""
    recipe = job.recipe
    if not job.method.trains_policy:
        model = run.reward_model = RewardModel.load(trained, recipe.device)
        run.pair_accuracy = pair_accuracy(model, start.held_out, recipe, job.method)
    else:
        run.policy = trained_policy(job, trained)
        run.after = evaluation_of(run.policy, recipe, job.task, job.out, "after", job.progress)
    local.finish(run)
    result = job.out / "result.json"
    facts = {"name": "trl", "processes": job.processes.count, "settings": job.settings}
    facts["versions"] = {name: version(name) for name in ("trl", "accelerate")}
    write_json(result, json.loads(result.read_text(encoding="utf-8")) | {"engine": facts})
    shutil.rmtree(trained)
    return run


def trained_policy(job: Job, trained: Path) -> Policy:
    """The starting policy with the trained weights; its tokenizer and settings as they were."""
    policy = job.load(job.start, job.recipe.device)
    if job.recipe.lora:
        from peft import PeftModel

        policy.model = PeftModel.from_pretrained(policy.model, trained).merge_and_unload()
    else:
        policy.model.load_state_dict(job.load(trained, job.recipe.device).model.state_dict())
    return policy
