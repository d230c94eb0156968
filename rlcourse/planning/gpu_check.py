"""``rlcourse gpu-check``: a few minutes that show what a GPU makes of the course.

Whether it computes what the CPU computes, how fast it writes tokens and makes GRPO steps, what
memory that takes against `rlcourse plan`, and whether every recipe runs. The larger model is
Qwen2.5-0.5B's shape with random weights, so nothing is downloaded. Each part runs separately: a
failure in one is reported, and the next begins.
"""

import math
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from rlcourse.machine import hardware, versions
from rlcourse.planning.memory import memory_of, total
from rlcourse.planning.shapes import shape_from_config
from rlcourse.planning.timing import duration_of, gpu_named
from rlcourse.planning.work import Lengths, Work, work_of
from rlcourse.policy import Policy, Rollouts
from rlcourse.signals import Interrupted
from rlcourse.tasks import load_task
from rlcourse.training import load_recipe, shipped_recipes, train
from rlcourse.training.learners import learner_for
from rlcourse.training.networks.optimizer import autocast, computes_bfloat16

HALF_BILLION: dict[str, Any] = {
    "vocab_size": 151_936,
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": True,
    "bos_token_id": None,
}
TINY: dict[str, Any] = {
    "vocab_size": 2048,
    "hidden_size": 56,
    "intermediate_size": 112,
    "num_hidden_layers": 2,
}


@dataclass
class Check:
    """A check of `device`, with a small shape where `tiny`; what it finds is printed and kept."""

    device: torch.device
    tiny: bool = False
    say: Callable[[str], None] = print
    facts: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    @property
    def size(self) -> dict[str, int]:
        """The batch of the timed steps."""
        if self.tiny:
            return {"prompts_per_step": 2, "group_size": 4, "max_tokens": 24}
        return {"prompts_per_step": 8, "group_size": 8, "max_tokens": 300}

    @property
    def precisions(self) -> tuple[str, ...]:
        """Those that training may have here; a GPU without bfloat16 is not asked for it."""
        if self.device.type != "cuda":
            return ("float32", "bfloat16")
        halves = ("bfloat16", "float16") if computes_bfloat16(self.device) else ("float16",)
        return ("float32", *halves)

    @property
    def precision(self) -> str:
        """That of what is timed."""
        return self.precisions[1] if self.device.type == "cuda" else "float32"

    def note(self, name: str, value: float, unit: str = "") -> None:
        """One fact."""
        self.facts[name] = value
        self.say(f"  {name:58} {value:10.4g} {unit}".rstrip())

    def run(self, minutes: float) -> bool:
        """Run all parts, none of which begins after that many minutes. Whether nothing failed."""
        until = time.monotonic() + 60 * minutes
        for name, value in (versions() | hardware(self.device)).items():
            self.say(f"  {name:58} {value}")
        for part in (parity, decoding, steps, recipes):
            title = (part.__doc__ or "").partition("\n")[0]
            if time.monotonic() > until:
                self.say(f"{title} left out: the time is up")
                continue
            self.say(title)
            with self.told(part.__name__):
                part(self)
        if self.failed:
            self.say(f"FAILED: {', '.join(self.failed)}")
        return not self.failed

    @contextmanager
    def told(self, name: str) -> Iterator[None]:
        """Report an exception raised inside, and count it as a failure."""
        try:
            yield
        except Interrupted:
            raise
        except Exception as error:
            self.failed.append(name)
            first = (str(error) or type(error).__name__).splitlines()[0]
            self.say(f"  {name}: FAILED: {type(error).__name__}: {first}")

    def wait(self) -> None:
        """Wait until the GPU has finished its work."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def policy(self) -> Policy:
        """The larger model's shape with random weights, and the embedded model's tokenizer."""
        from transformers import Qwen2Config, Qwen2ForCausalLM

        torch.manual_seed(0)
        tokenizer = Policy.load("tiny", device="cpu").tokenizer
        shape = HALF_BILLION | (TINY if self.tiny else {})
        with self.device:
            model = Qwen2ForCausalLM(Qwen2Config(**shape, eos_token_id=tokenizer.eos_token_id))
        return Policy(model.eval(), tokenizer)


def prompts_of(policy: Policy, n: int) -> list[str]:
    """Some questions of the embedded task."""
    return [policy.format_prompt(p.question) for p in load_task("word_problems").train[:n]]


def spread(completions: list[str]) -> Tensor:
    """0, 1, 0, 1 …: a random model earns nothing, and rows without a gradient would be skipped."""
    return torch.arange(len(completions)).remainder(2).float()


# The parts


def parity(check: Check) -> None:
    """The embedded model: log-probs and gradients against the CPU's in float32"""
    here = Policy.load("tiny", device="cpu")
    generator = torch.Generator().manual_seed(0)
    rollouts = here.sample(prompts_of(here, 8), group_size=4, generator=generator)
    exact, slope = _scored(here, rollouts, torch.device("cpu"), "float32")
    there = Policy.load("tiny", device=check.device)
    for dtype in check.precisions:
        found, other = _scored(there, rollouts.to(check.device), check.device, dtype)
        worst = (found - exact).abs().max().item()
        turned = ((other - slope).norm() / slope.norm()).item()
        check.note(f"{dtype}: log-probs differ by at most", worst, "nats")
        check.note(f"{dtype}: the gradient differs by", turned, "of its length")
        if dtype == "float32" and not (worst < 1e-2 and turned < 1e-2):
            raise ValueError("float32 differs from the CPU by more than rounding can")


def _scored(policy: Policy, rollouts: Rollouts, device, dtype: str) -> tuple[Tensor, Tensor]:
    """Log-probs of given completions, and the gradient of their mean, on the CPU."""
    policy.zero_grad()
    with autocast(device, dtype):
        logprobs = policy.logprobs(rollouts)
        (logprobs.sum() / rollouts.mask.sum()).backward()
    gradient = torch.cat([p.grad.flatten() for p in policy.parameters()])
    return logprobs.detach().float().cpu(), gradient.float().cpu()


def decoding(check: Check) -> None:
    """The larger model: tokens a second, with few kernels, a cache of fixed size, one that grows"""
    policy, size = check.policy(), check.size
    policy.eos_ids = ()  # every completion is as long as it may be
    dtype = check.precision
    prompts = prompts_of(policy, size["prompts_per_step"])
    options = {"group_size": size["group_size"], "max_tokens": size["max_tokens"]}
    greedy = {}
    ways = {"few kernels": (True, True), "fixed cache": (True, False)}
    for label, way in (ways | {"growing cache": (False, False)}).items():
        policy.static_cache, policy.fused_decoding = way
        generator = torch.Generator(check.device).manual_seed(0)
        with autocast(check.device, dtype):
            policy.sample(prompts, max_tokens=8, generator=generator)  # loads libraries
            check.wait()
            started = time.perf_counter()
            policy.sample(prompts, generator=generator, **options)
            check.wait()
        seconds = time.perf_counter() - started
        check.note(f"{label}: milliseconds a token", 1e3 * seconds / size["max_tokens"])
        tokens = math.prod(size.values())
        check.note(f"{label}: tokens a second", tokens / seconds)
        greedy[label] = policy.sample(prompts, max_tokens=16, temperature=0.0).tokens
    grown = greedy.pop("growing cache")
    for label, tokens in greedy.items():
        same = (tokens == grown).float().mean().item()
        check.note(f"{label}: share of equal greedy tokens in float32", same)


def steps(check: Check) -> None:
    """The larger model: GRPO steps, and their memory against the plan's"""
    cases: dict[str, dict] = {"all rows at once": {}, "micro_batch=8": {"micro_batch": 8}}
    if "float16" in check.precisions and check.precision != "float16":
        cases["dtype=float16"] = {"dtype": "float16"}
    if find_spec("bitsandbytes"):
        cases["optimizer=adamw_8bit"] = {"optimizer": "adamw_8bit"}
    for label, changes in cases.items():
        with check.told(label):
            _some_steps(check, label, {"dtype": check.precision} | changes)


def _some_steps(check: Check, label: str, changes: dict) -> None:
    """Four steps with these settings: seconds and memory, beside the plan's."""
    recipe = load_recipe("grpo", warm_start=None, steps=4, lr=1e-6, **check.size, **changes)
    policy = check.policy()
    shape = shape_from_config(policy.model.config, "random weights")
    task, method = load_task("word_problems"), recipe.method
    if check.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(check.device)
    learner = learner_for(policy, recipe, task, method, spread)
    found = list(learner.steps(0))[1:]
    for name in ("seconds", "seconds/sampling"):
        check.note(f"{label}: {name} a step", statistics.median(m[name] for m in found), "s")
    longest = max(p.shape[0] for p in _prompt_tokens(policy, recipe, task))
    tokens = recipe.max_tokens
    work = replace(work_of(recipe), shape=shape)
    work = replace(work, lengths=Lengths(longest, longest, tokens, tokens))
    check.note(f"{label}: memory by the plan", memory_of(work).peak / 1e9, "GB")
    if check.device.type == "cuda":
        peak = torch.cuda.max_memory_allocated(check.device) / 1e9
        check.note(f"{label}: memory it took", peak, "GB")
        note_planned_seconds(check, label, work)


def note_planned_seconds(check: Check, label: str, work: Work) -> None:
    """What the plan says of a step's seconds, where it knows this GPU's data sheet."""
    properties = torch.cuda.get_device_properties(check.device)
    if (gpu := gpu_named(properties.name, properties.total_memory)) is None:
        check.say(f"  the plan does not know {properties.name}, and gives no seconds for it")
        return
    for line in (lines := duration_of(work, gpu, free=1e9 * gpu.memory).step):
        check.note(f"{label}: {line.name} by the plan", line.amount, "s")
    check.note(f"{label}: seconds a step by the plan", total(lines), "s")


def _prompt_tokens(policy: Policy, recipe, task) -> Iterator[Tensor]:
    """The tokens of each of the first problems' prompts."""
    for problem in task.train[: recipe.prompts_per_step * recipe.steps]:
        tokens, _ = policy.encode_prompts([policy.format_prompt(problem.question)])
        yield tokens[0]


def recipes(check: Check) -> None:
    """The embedded model: two steps of every recipe"""
    small: dict = {
        "prompts_per_step": 4,
        "group_size": 4,
        "max_tokens": 24,
        "steps": 2,
        "warmup": 0,
    }
    small |= {"eval_problems": 0, "questions": 16, "warm_start": None, "minibatches": 1}
    start = Policy.load("tiny", device=check.device)
    names = [name for name in shipped_recipes() if load_recipe(name).task == "word_problems"]
    for name in ("grpo", "dpo") if check.tiny else names:
        run = partial(train, policy=start, reward=spread, progress=False)
        for dtype in check.precisions:
            with check.told(f"{name} in {dtype}"):
                recipe = load_recipe(name)
                own = {k: v for k, v in small.items() if k in recipe.settings()}
                done = run(recipe.but(**own, dtype=dtype))
                numbers = [value for m in done.metrics for value in m.values()]
                if not all(map(math.isfinite, numbers)):
                    raise ValueError("a metric is not finite")
                check.note(f"{name} in {dtype}: a step", done.metrics[-1]["seconds"], "s")
