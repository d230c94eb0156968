"""``rlcourse gpu-check``: a few minutes that show what a GPU makes of the course.

How fast it writes tokens and makes GRPO steps, and what memory these take beside `rlcourse plan`.
The model is Qwen2.5-0.5B's shape with random weights, so nothing is downloaded. Whether a GPU
computes what the CPU computes, ``make test-gpu`` says.
"""

import statistics
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from rlcourse.machine import hardware, versions
from rlcourse.planning.memory import memory_of
from rlcourse.planning.shapes import ModelShape, known_config
from rlcourse.planning.work import Lengths, work_of
from rlcourse.policy import Policy
from rlcourse.tasks import load_task
from rlcourse.training import load_recipe
from rlcourse.training.learners import learner_for

SIZE = {"prompts_per_step": 8, "group_size": 8, "max_tokens": 300}  # of what is timed
TINY_SIZE = {"prompts_per_step": 2, "group_size": 4, "max_tokens": 24}


def check(device: torch.device, tiny: bool = False) -> None:
    """Make some steps, and print what each kind of them takes."""
    for name, value in (versions() | hardware(device)).items():
        print(f"  {name:50} {value}")
    for name, number, unit in steps(device, tiny):
        print(f"  {name:50} {number:10.4g} {unit}")


def half(device: torch.device) -> str:
    """The 16 bits to train in here."""
    if device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        return "float16"
    return "bfloat16"


def large_policy(device: torch.device, tiny: bool) -> Policy:
    """A larger model with the embedded model's tokenizer; the embedded model where `tiny`."""
    embedded = Policy.load("tiny", device=device)
    if tiny:
        return embedded
    torch.manual_seed(0)
    eos = embedded.tokenizer.eos_token_id
    config = known_config("Qwen/Qwen2.5-0.5B", bos_token_id=None, eos_token_id=eos)
    with device:
        return Policy(AutoModelForCausalLM.from_config(config).eval(), embedded.tokenizer)


def steps(device: torch.device, tiny: bool) -> Iterator[tuple[str, float, str]]:
    """What GRPO steps show: the name of a measurement, the number and its unit."""
    for label, micro_batch in (("micro_batch=8", 8), ("all rows at once", None)):
        settings = {"warm_start": None, "steps": 4, "lr": 1e-6, "dtype": half(device)}
        settings |= TINY_SIZE if tiny else SIZE
        recipe = load_recipe("grpo", micro_batch=micro_batch, **settings)
        policy = large_policy(device, tiny)
        task = load_task("word_problems")
        some = task.train[: recipe.prompts_per_step * recipe.steps]
        prompts = policy.encode_prompts([policy.format_prompt(p.question) for p in some])
        longest = prompts[0].shape[1]
        shape = ModelShape(policy.model.config)
        lengths = Lengths(longest, longest, recipe.max_tokens, recipe.max_tokens)
        planned = memory_of(replace(work_of(recipe), shape=shape, lengths=lengths)).peak
        yield f"{label}: memory by the plan", planned / 1e9, "GB"
        if device.type == "cuda":
            if planned > torch.cuda.get_device_properties(device).total_memory:
                continue
            torch.cuda.reset_peak_memory_stats(device)
        learner = learner_for(policy, recipe, task, recipe.method, spread)
        found = list(learner.steps(0))[1:]  # the first one loads libraries
        units = {"seconds": "s", "seconds/sampling": "s", "tokens_per_second": "a second"}
        for name, unit in units.items():
            yield f"{label}: {name}", statistics.median(m[name] for m in found), unit
        if device.type == "cuda":
            yield f"{label}: memory it took", torch.cuda.max_memory_allocated(device) / 1e9, "GB"


def spread(completions: list[str]) -> Tensor:
    """0, 1, 0, 1 …: a random model earns nothing, and rows without a gradient would be skipped."""
    return torch.arange(len(completions)).remainder(2).float()
