"""One GRPO training step, ours against TRL's ``GRPOTrainer``, on the same model and prompts.

    python tests/benchmarks/bench_step.py
    python tests/benchmarks/bench_step.py --policy runs/laptop/warm_start/policy --prompts 4 \
        --max-tokens 48 --steps 3 --rounds 2

Both sides start from the same weights, sample the same number of completions of the same prompts
at temperature 1, score them with the same reward and make one update with the same learning rate
and loss (GRPO without KL). They take turns, several rounds, so that a busy machine hurts both. The
first step of each turn warms up and is not counted. A step's time is what its own loop measures.
On a GPU, TRL attends as PyTorch does by default, with cuDNN where that comes first.
"""

import argparse
import os
import statistics
import tempfile
import time
import warnings

import torch

from rlcourse.policy import Policy
from rlcourse.policy.loading import attend_to_any_length
from rlcourse.tasks import correctness_reward, load_task
from rlcourse.training import load_recipe, train
from rlcourse.training.online.loop import training_steps
from rlcourse.training.recipes.methods import METHODS


def our_steps(policy: Policy, task, options) -> list[tuple[float, float]]:
    """Seconds and sampled tokens of each of our steps."""
    recipe = load_recipe("grpo", warm_start=None, **vars_of(options), steps=options.steps + 1)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=recipe.lr, fused=True)
    steps = training_steps(policy, None, optimizer, recipe, task, METHODS["grpo"], None)
    return [(m["seconds"], m["tokens"]) for m in steps][1:]


def vars_of(options) -> dict:
    """The recipe's share of the command line."""
    names = ("group_size", "max_tokens", "lr", "dtype")
    recipe = {name: getattr(options, name) for name in names}
    return recipe | {"prompts_per_step": options.prompts}


def trl_steps(policy: Policy, task, options) -> list[tuple[float, float]]:
    """The same of TRL's steps, measured between its own callbacks."""
    from datasets import Dataset
    from transformers import PrinterCallback, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    measured = []
    torch.backends.cuda.enable_cudnn_sdp(True)

    class Clock(TrainerCallback):
        def on_step_begin(self, args, state, control, **unused):
            self.started = time.perf_counter()

        def on_step_end(self, args, state, control, **unused):
            if args.device.type == "cuda":
                torch.cuda.synchronize()
            measured.append(time.perf_counter() - self.started)

    lengths = []

    def reward(completions, answer, completion_ids, **unused):
        lengths.append(sum(map(len, completion_ids)))
        return correctness_reward(completions, answer, task.extract).tolist()

    rows = [{"prompt": policy.format_prompt(p.question), "answer": p.answer} for p in task.train]
    with tempfile.TemporaryDirectory() as scratch:
        config = GRPOConfig(
            output_dir=scratch,
            max_steps=options.steps + 1,
            per_device_train_batch_size=options.prompts * options.group_size,
            num_generations=options.group_size,
            max_completion_length=options.max_tokens,
            learning_rate=options.lr,
            lr_scheduler_type="constant",
            beta=0.0,
            loss_type="grpo",
            temperature=1.0,
            bf16=options.dtype == "bfloat16",
            use_cpu=options.device == "cpu",
            gradient_checkpointing=False,
            logging_strategy="no",
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        trainer = GRPOTrainer(
            policy.model,
            reward,
            args=config,
            train_dataset=Dataset.from_list(rows),
            processing_class=policy.tokenizer,
            callbacks=[Clock()],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    attend_to_any_length()
    return list(zip(measured, lengths, strict=True))[1:]


def main() -> None:
    """Parse the options, take turns, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policy", help="a model's directory [default: the embedded, imitating]")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--prompts", type=int, default=16)
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--lr", type=float, default=1e-5, help="small: both keep their lengths")
    parser.add_argument("--steps", type=int, default=8, help="counted steps of each turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dtype", help="[default: bfloat16 on a GPU, otherwise float32]")
    options = parser.parse_args()
    options.dtype = options.dtype or ("float32" if options.device == "cpu" else "bfloat16")
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore", FutureWarning)

    task = load_task("word_problems")
    if options.policy:
        start = Policy.load(options.policy, device=options.device)
    else:
        sft = load_recipe("sft", eval_problems=0, device=options.device)
        start = train(sft, progress=False).policy
    sides = {"rlcourse": our_steps, "TRL GRPOTrainer": trl_steps}
    results: dict[str, list] = {name: [] for name in sides}
    for _ in range(options.rounds):
        for name, steps in sides.items():
            results[name] += steps(start.clone(), task, options)

    print(
        f"\nGRPO, {options.prompts} prompts x {options.group_size} completions of at most "
        f"{options.max_tokens} tokens, on {options.device} in {options.dtype}, "
        f"{options.threads} threads, {options.rounds} turns of {options.steps} steps"
    )
    print(f"{'':18}{'s/step median':>15}{'fastest':>10}{'slowest':>10}{'tokens/s':>12}")
    for name, steps in results.items():
        seconds = [s for s, _ in steps]
        speed = sum(n for _, n in steps) / sum(seconds)
        print(
            f"{name:18}{statistics.median(seconds):15.3f}{min(seconds):10.3f}"
            f"{max(seconds):10.3f}{speed:12,.0f}"
        )
    ours, theirs = ([s for s, _ in steps] for steps in results.values())
    print(
        f"{'TRL / rlcourse':18}{statistics.median(theirs) / statistics.median(ours):15.2f}"
        f"{min(theirs) / min(ours):10.2f}"
    )


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main()
