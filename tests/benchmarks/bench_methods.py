"""Every method from the same warm start, compared at equal samples.

    python tests/benchmarks/bench_methods.py [--seeds 3] [--completions 7680] [--out FILE.json]

A method stops at the last step at which it has sampled no more than `--completions` completions;
dapo, which draws more for a step, therefore makes fewer steps, and dpo spends them all on its pairs
before it begins. Accuracy is greedy on 200 held-out problems; the brackets are a 95 %
interval over problems, and of the mean over seeds the lowest and the highest seed.
"""

import argparse
import json
import time
from itertools import accumulate
from pathlib import Path

import torch

from rlcourse.evaluation import evaluate_policy
from rlcourse.files import write_json
from rlcourse.tasks import load_task
from rlcourse.training import load_recipe, train

METHODS = [
    "rejection_sampling",
    "reinforce",
    "rloo",
    "ppo",
    "grpo",
    "dr_grpo",
    "dapo",
    "gspo",
    "dpo",
]


def spent_after(run, recipe) -> int:
    """Completions that a finished run has sampled."""
    if recipe.algorithm == "dpo":
        return recipe.questions * recipe.group_size
    groups = [m.get("groups_drawn", recipe.prompts_per_step) for m in run.metrics]
    return int(sum(groups)) * recipe.group_size


def within(recipe, budget: int, policy, task):
    """The run of `recipe` with as many steps as the budget allows."""
    if recipe.algorithm == "dpo":
        recipe = recipe.but(questions=budget // recipe.group_size)
        return train(recipe, policy=policy, task=task, progress=False)
    steps = budget // (recipe.prompts_per_step * recipe.group_size)
    while True:
        run = train(recipe.but(steps=steps), policy=policy, task=task, progress=False)
        over = spent_after(run, recipe) - budget
        if over <= 0:
            return run
        # The first steps of a shorter run are those of a longer one: cut to where the budget ends.
        spent = accumulate(int(m["groups_drawn"]) * recipe.group_size for m in run.metrics)
        steps = sum(total <= budget for total in spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--completions", type=int, default=7680)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--out", help="write the figures there, as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)

    found: dict[str, list[dict]] = {name: [] for name in ("warm start", *options.methods)}
    for seed in range(options.seeds):
        task = load_task("word_problems", seed=seed)
        warm = train(load_recipe("sft", seed=seed, eval_problems=0), task=task, progress=False)
        measured = evaluate_policy(warm.policy, task.evaluation[:200], seed=seed)
        found["warm start"].append(figures(measured, 0, 0, 0.0))
        for name in options.methods:
            started = time.perf_counter()
            recipe = load_recipe(name, seed=seed, warm_start=None, eval_problems=0)
            run = within(recipe, options.completions, warm.policy, task)
            seconds = run.seconds or time.perf_counter() - started
            measured = evaluate_policy(run.policy, task.evaluation[:200], seed=seed)
            spent = spent_after(run, run.recipe)
            found[name].append(figures(measured, len(run.metrics), spent, seconds))
            print(f"seed {seed}  {name:18} {json.dumps(found[name][-1])}", flush=True)
    print(table(found, options))
    if options.out:
        write_json(Path(options.out), found)


def figures(evaluation, steps: int, completions: int, seconds: float) -> dict:
    greedy, sampled = evaluation.accuracy, evaluation.sampled_accuracy
    return {
        "greedy": greedy.value,
        "interval": [greedy.low, greedy.high],
        "sampled": sampled.value,
        "pass@8": evaluation.pass_at[8].value,
        "steps": steps,
        "completions": completions,
        "seconds": round(seconds, 1),
    }


def table(found: dict[str, list[dict]], options) -> str:
    """Markdown: mean over seeds, lowest and highest, steps, completions, seconds."""
    lines = [
        f"at most {options.completions:,} completions, {options.seeds} seeds, one thread",
        "| method | greedy: mean [lowest, highest] | of each seed | sampled | pass@8 | steps | "
        "completions | training s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, rows in found.items():

        def mean(key, rows=rows):
            return sum(row[key] for row in rows) / len(rows)

        greedy = [row["greedy"] for row in rows]
        each = " ".join("{:.3f} [{:.3f}, {:.3f}]".format(r["greedy"], *r["interval"]) for r in rows)
        lines.append(
            f"| {name} | {mean('greedy'):.3f} [{min(greedy):.3f}, {max(greedy):.3f}] | {each} | "
            f"{mean('sampled'):.3f} | {mean('pass@8'):.3f} | {mean('steps'):.0f} | "
            f"{mean('completions'):,.0f} | {mean('seconds'):.0f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
