"""The same recipe by both engines, on several seeds: accuracy after training, and speed.

    python tests/benchmarks/bench_engines.py                    # local and trl, one process each
    python tests/benchmarks/bench_engines.py --processes 2      # trl in two processes

For each seed the local engine runs the warm start once; every run then begins with these weights.
Runs are what a user would start: commands of their own, one after the other, read from their
result.json.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rlcourse.training import load_recipe, parse_overrides, train


def command(engine: str, processes: int) -> list[str]:
    """How a run is started; without GPUs, torch's launcher starts processes on the CPU."""
    rlcourse = ["-m", "rlcourse", "train"]
    if processes == 1:
        return [sys.executable, *rlcourse, "--engine", engine]
    launch = ["-m", "accelerate.commands.launch", "--multi_gpu", "--main_process_port", "0"]
    launch += ["--num_processes", str(processes)]
    return [sys.executable, *launch, *rlcourse, "--engine", engine]


def run(engine: str, processes: int, recipe, directory: Path) -> tuple[dict, list[float]]:
    """The result of a run, and the seconds of each of its steps."""
    directory.mkdir(parents=True)
    (directory / "recipe.yaml").write_text(recipe.to_yaml(), encoding="utf-8")
    out = directory / "out"
    arguments = [str(directory / "recipe.yaml"), "--out", str(out)]
    done = subprocess.run(
        [*command(engine, processes), *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    if done.returncode:
        sys.exit(done.stderr)
    lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    return result, [json.loads(line)["seconds"] for line in lines]


def main() -> None:
    """Parse the options, run, print a line for each run and a summary for each engine."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recipe", default="grpo")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--processes", type=int, default=1, help="of TRL; more: TRL alone")
    parser.add_argument("settings", nargs="*", help="KEY=VALUE, as for rlcourse train")
    options = parser.parse_args()
    engines = ("local", "trl") if options.processes == 1 else ("trl",)
    after: dict[str, list[float]] = {engine: [] for engine in engines}

    print(f"{'engine':8}{'seed':>5}{'greedy before → after':>26}{'sampled after':>26}{'s/step':>8}")
    with tempfile.TemporaryDirectory() as scratch:
        for seed in options.seeds:
            place = Path(scratch) / str(seed)
            recipe = load_recipe(options.recipe, seed=seed, **parse_overrides(options.settings))
            if recipe.warm_start:
                first = load_recipe(recipe.warm_start, seed=seed, eval_problems=0)
                train(first, place / "warm_start", progress=False)
                policy = str(place / "warm_start" / "policy")
                recipe = recipe.but(policy=policy, warm_start=None)
            for engine in engines:
                result, steps = run(engine, options.processes, recipe, place / engine)
                before, now = result["before"]["accuracy"], result["after"]["accuracy"]
                sampled = result["after"]["sampled_accuracy"]
                change = f"{before['value']:.3f} → {_interval(now)}"
                median = statistics.median(steps)
                print(
                    f"{engine:8}{seed:5}{change:>26}{_interval(sampled):>26}{median:8.2f}",
                    flush=True,
                )
                after[engine].append(now["value"])
    for engine, values in after.items():
        spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
        print(f"{engine}: greedy accuracy {statistics.mean(values):.3f}{spread} over the seeds")


def _interval(interval: dict) -> str:
    return f"{interval['value']:.3f} [{interval['low']:.3f}, {interval['high']:.3f}]"


if __name__ == "__main__":
    main()
