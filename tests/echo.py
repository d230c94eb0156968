"""A policy small enough to train in milliseconds, and a task that it can learn: echo a digit."""

import functools

import perturbation  # noqa: F401  (first, for processes that tests start)
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from rlcourse.policy import Policy
from rlcourse.tasks.problem import Problem, Task
from rlcourse.training import Recipe, train
from rlcourse.training.recipes.settings import class_of

SYMBOLS = ["<pad>", "<eos>", "<unk>", *"0123456789# ?", "\n"]


def echo_policy(seed: int = 0) -> Policy:
    """A random one-layer Llama over single characters."""
    tokenizer = Tokenizer(models.WordLevel({s: i for i, s in enumerate(SYMBOLS)}, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    tokenizer.decoder = decoders.Fuse()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )
    fast.chat_template = "{{ messages[-1]['content'] }}?"
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(SYMBOLS),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=64,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
    )
    return Policy(LlamaForCausalLM(config).eval(), fast)


def echo_task() -> Task:
    """Question "7", answer "#### 7"; the same ten problems to train and to evaluate on."""
    problems = [Problem(str(n), f"#### {n}") for n in range(10)]
    return Task("echo", problems, problems)


def echo_recipe(algorithm: str = "grpo", **changes) -> Recipe:
    """A recipe of a few milliseconds a step."""
    values = {"steps": 4, "prompts_per_step": 5, "group_size": 4, "max_tokens": 8, "lr": 3e-3}
    values |= {"eval_problems": 10, "eval_samples": 4, "checkpoint_every": 2, "device": "cpu"}
    values = having(algorithm, **values)
    return Recipe.of({"algorithm": algorithm} | values | changes)


def having(algorithm: str, **settings) -> dict:
    """Those of the settings that the algorithm has."""
    return {k: v for k, v in settings.items() if k in class_of(algorithm).settings()}


def by_length(completions) -> torch.Tensor:
    """A reward that a policy which knows nothing earns now and then."""
    return torch.tensor([float(len(text) % 3 == 0) for text in completions])


def likes_sevens(completions) -> torch.Tensor:
    """A reward that has nothing to do with the answer."""
    return torch.tensor([float("7" in text) for text in completions])


def quiet(recipe, *out, **options):
    """A run without a progress bar."""
    return train(recipe, *out, progress=False, **options)


def spied(function, called: set):
    """The function under its name and signature, which adds its name to `called`."""

    @functools.wraps(function)
    def spy(*args, **kwargs):
        called.add(function.__name__)
        return function(*args, **kwargs)

    return spy


def weights(module) -> torch.Tensor:
    """All of them, in one row: (D,)."""
    return torch.cat([p.detach().flatten() for p in module.parameters()])


def half_taught() -> Policy:
    """It knows the format and guesses the digit."""
    lesson = echo_recipe("sft", steps=40, prompts_per_step=10, lr=1e-2, eval_problems=0)
    return quiet(lesson, policy=echo_policy(), task=echo_task()).policy
