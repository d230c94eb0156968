"""What rank zero does for all, with the local engine's code, while the others wait for it.

Before training: the warm start, the evaluation. On the way: held-out accuracy. After it:
evaluation, report, result.
"""

import json
import shutil
from importlib.metadata import version
from pathlib import Path

import torch

from rlcourse.evaluation import Evaluation
from rlcourse.files import write_json
from rlcourse.policy import Policy
from rlcourse.training import run as local
from rlcourse.training.measuring.evaluating import evaluation_of, held_out_metrics
from rlcourse.training.runs.outcome import Run
from rlcourse.training.runs.run_directory import begin
from rlcourse.trl_engine.directory import ENGINE_FILE
from rlcourse.trl_engine.job import Job


def before_training(job: Job, resume: bool) -> Evaluation | None:
    """Run the warm start, and evaluate. The files are there for all processes."""
    recipe, task = job.recipe, job.task
    policy = local.starting_policy(recipe, job.out, task, resume, job.progress).eval()
    local.check_prompts_fit(policy, task, recipe)
    begin(job.out, recipe)
    facts = {"engine": "trl", "processes": job.processes.count, "settings": job.settings}
    write_json(job.out / ENGINE_FILE, facts)
    before = evaluation_of(policy, recipe, task, job.out, "before", job.progress)
    del policy
    torch.cuda.empty_cache()  # the trainer wants it
    return before


def held_out_accuracy(job: Job, model, tokenizer) -> dict[str, float]:
    """How good `model`, as it is now, is on held-out problems; as a metric."""
    model = model.get_base_model() if job.recipe.lora else model
    return held_out_metrics(Policy(model, tokenizer), job.recipe, job.task, None)


def after_training(job: Job, run: Run, trained: Path) -> Run:
    """Evaluate what TRL left in the directory `trained`; write policy, report and result."""
    run.policy = trained_policy(job, trained)
    run.after = evaluation_of(run.policy, job.recipe, job.task, job.out, "after", job.progress)
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
