"""``rlcourse gpu-check``: a few minutes that show what a GPU makes of the course.

Whether it computes what the CPU computes, how fast it writes tokens and makes GRPO steps, and what
memory that takes against `rlcourse plan`. The larger model is Qwen2.5-0.5B's shape with random
weights, so nothing is downloaded. Each part runs separately: a failure in one is reported, and the
next begins.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from rlcourse.machine import hardware, versions
from rlcourse.planning.memory import memory_of
from rlcourse.planning.shapes import shape_from_config
from rlcourse.planning.work import Lengths, work_of
from rlcourse.policy import Policy, Rollouts
from rlcourse.signals import Interrupted
from rlcourse.tasks import load_task
from rlcourse.training import load_recipe
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
TINY = {"vocab_size": 2048, "hidden_size": 56, "intermediate_size": 112, "num_hidden_layers": 2}
SIZE = {"prompts_per_step": 8, "group_size": 8, "max_tokens": 300}  # of the timed steps
TINY_SIZE = {"prompts_per_step": 2, "group_size": 4, "max_tokens": 24}
WAYS = {"few kernels": (True, True), "fixed cache": (True, False), "growing cache": (False, False)}


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
        return TINY_SIZE if self.tiny else SIZE

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

    def run(self) -> bool:
        """Run all parts. Whether nothing failed."""
        for name, value in (versions() | hardware(self.device)).items():
            self.say(f"  {name:58} {value}")
        for part in (parity, decoding, steps):
            self.say((part.__doc__ or "").partition("\n")[0])
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
    policy, tokens = check.policy(), check.size["max_tokens"]
    policy.eos_ids = ()  # every completion is as long as it may be
    prompts, group = prompts_of(policy, check.size["prompts_per_step"]), check.size["group_size"]
    greedy = {}
    for label, way in WAYS.items():
        policy.static_cache, policy.fused_decoding = way
        generator = torch.Generator(check.device).manual_seed(0)
        with autocast(check.device, check.precision):
            policy.sample(prompts, max_tokens=8, generator=generator)  # loads libraries
            started = time.perf_counter()
            drawn = policy.sample(prompts, group, max_tokens=tokens, generator=generator)
            drawn.tokens.sum().item()  # waits until the GPU has finished
        seconds = time.perf_counter() - started
        check.note(f"{label}: milliseconds a token", 1e3 * seconds / tokens)
        check.note(f"{label}: tokens a second", len(prompts) * group * tokens / seconds)
        greedy[label] = policy.sample(prompts, max_tokens=16, temperature=0.0).tokens
    grown = greedy.pop("growing cache")
    for label, found in greedy.items():
        same = (found == grown).float().mean().item()
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
    """Four steps with these settings: their seconds, and their memory beside the plan's."""
    recipe = load_recipe("grpo", warm_start=None, steps=4, lr=1e-6, **check.size, **changes)
    policy, task = check.policy(), load_task("word_problems")
    asked = prompts_of(policy, recipe.prompts_per_step * recipe.steps)
    longest = max(policy.encode_prompts([prompt])[0].shape[1] for prompt in asked)
    shape = shape_from_config(policy.model.config, "random weights")
    lengths = Lengths(longest, longest, recipe.max_tokens, recipe.max_tokens)
    work = replace(work_of(recipe), shape=shape, lengths=lengths)
    if check.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(check.device)
    learner = learner_for(policy, recipe, task, recipe.method, spread)
    found = list(learner.steps(0))[1:]
    for name in ("seconds", "seconds/sampling"):
        check.note(f"{label}: {name} a step", statistics.median(m[name] for m in found), "s")
    check.note(f"{label}: memory by the plan", memory_of(work).peak / 1e9, "GB")
    if check.device.type == "cuda":
        peak = torch.cuda.max_memory_allocated(check.device) / 1e9
        check.note(f"{label}: memory it took", peak, "GB")
