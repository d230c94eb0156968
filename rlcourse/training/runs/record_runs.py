"""The recorded runs of lesson 10: ``python -m rlcourse.training.runs.record_runs DIRECTORY``.

Real runs on the embedded model, healthy and with the faults of ``faults.FAULTS``, kept as what a
run logs and a few of its completions. Each is one file in the directory, written once, so that the
command can be stopped and given again; when all are there, it puts them together into the two files
of the package: the runs that the lesson shows, and those that a grade is made of.

Settings are not a clue: healthy runs also have each setting that a fault brings.
"""

import json
import sys
from pathlib import Path

import rlcourse
from rlcourse.files import write_text
from rlcourse.policy import Policy
from rlcourse.tasks import load_task
from rlcourse.training.recipes.recipe import load_recipe
from rlcourse.training.run import train

PACKAGE = Path(rlcourse.__file__).parent
SHOWN = PACKAGE / "tasks" / "recorded_runs.json"
HIDDEN = next((PACKAGE.parent / "course" / "lessons").glob("*/hidden_runs.json"))

BASE = {"steps": 20, "lr": 6e-4, "warm_start": None, "eval_problems": 0, "device": "cpu"}
SEVERAL = {"num_iterations": 4, "lr": 3e-4}
SLOW = {"lr": 3e-5}
WARM, ANCHORED = {"temperature": 1.3}, {"beta": 0.05}
# (fault or None, settings); every one with the seeds of both files
RUNS: tuple[tuple[str | None, dict], ...] = (
    (None, {}),
    (None, WARM),
    (None, ANCHORED),
    (None, SLOW),
    (None, SEVERAL),
    ("stale_sampler", {}),
    ("missing_temperature", WARM),
    ("dropout", {}),
    ("padding_counted", {}),
    ("masked_eos", {}),
    ("unreadable_gold", {}),
    ("empty_answer", {}),
    ("wrong_grouping", {}),
    ("kl_sign", ANCHORED),
    ("bfloat16_weights", SLOW),
    ("all_truncated", {"max_tokens": 8}),
    ("ratio_one", SEVERAL),
    ("dropout", WARM),  # no setting says which of the two causes a gap has
)
SEEDS = {SHOWN: (0,), HIDDEN: (1, 2)}
# A diagnosis needs no more than this; what the lesson draws is longer.
SHORTER = {"steps": 12, "prompts_per_step": 8}
LONG = (
    *("missing_temperature", "dropout", "padding_counted", "masked_eos", "unreadable_gold"),
    *("wrong_grouping", "kl_sign", "bfloat16_weights", "ratio_one"),
)
SETTINGS = ("temperature", "group_size", "num_iterations", "lr", "beta", "clip", "max_tokens")
METRICS = (
    *("reward/mean", "accuracy", "loss", "grad_norm", "entropy", "weights_changed", "kl", "kl_max"),
    *("gap/mean", "gap/max", "ratio/max", "clip_ratio", "clip_ratio/low", "clip_ratio/high"),
    *("loss_tokens", "advantages/equal_rewards"),
    *("frac_reward_zero_std", "frac_reward_zero_std_expected"),
    *("completions/clipped_ratio", "completions/mean_length"),
)
QUESTIONS = 3  # whose greedy answers after training are kept


def record(policy, fault: str | None, settings: dict, seed: int) -> dict:
    """One run: its fault, its settings, {metric: a value a step}, and samples from its end."""
    task = load_task("word_problems", seed=seed)
    recipe = load_recipe("grpo", **(BASE | settings), seed=seed)
    run = train(recipe, policy=policy, task=task, fault=fault, progress=False)
    trained = run.policy
    assert trained is not None, "grpo trains a policy"
    metrics = {
        name: [float(f"{step[name]:.4g}") if name in step else None for step in run.metrics]
        for name in METRICS  # null: there was nothing to measure
    }
    problems = task.evaluation[:QUESTIONS]
    prompts = [policy.format_prompt(problem.question) for problem in problems]
    answers = trained.sample(prompts, max_tokens=recipe.max_tokens, temperature=0.0)
    return {
        "cause": fault or "healthy",
        "seed": seed,
        "settings": {name: getattr(run.recipe, name) for name in SETTINGS},
        "metrics": metrics,
        "samples": [
            {"question": problem.question, "answer": problem.answer, "completion": completion}
            for problem, completion in zip(problems, trained.decode(answers), strict=True)
        ],
    }


def main(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    warm = directory / "warm"
    if not warm.exists():
        train(load_recipe("sft", eval_problems=0, device="cpu"), progress=False).trained.save(warm)
    policy = Policy.load(warm, device="cpu")
    files: dict[Path, list[Path]] = {target: [] for target in SEEDS}
    for target, seeds in SEEDS.items():
        for seed in seeds:
            for n, (fault, settings) in enumerate(RUNS):
                path = directory / f"{n:02}-{fault or 'healthy'}-{seed}.json"
                files[target].append(path)
                if not path.exists():
                    long = target == SHOWN and (fault in LONG or n == 0)
                    chosen = settings if long else settings | SHORTER
                    write_text(path, json.dumps(record(policy, fault, chosen, seed)) + "\n")
                    print(path.name, flush=True)
    for target, paths in files.items():
        lines = [path.read_text("utf-8").strip() for path in paths]
        write_text(target, "[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
