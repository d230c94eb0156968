"""A language model's body with a scalar head: one number at every token instead of a word.

Read at each token, the number is a critic's value; read at a completion's last token, it is a
reward. The model is Hugging Face's ``…ForSequenceClassification`` with one label, the common format
of reward models.
"""

import copy
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from rlcourse.algorithms import last_token_index
from rlcourse.errors import UserError
from rlcourse.policy import Policy
from rlcourse.policy.decoding import token_positions
from rlcourse.policy.large_vocabulary import hidden_states
from rlcourse.policy.loading import choose_device, no_progress_bars
from rlcourse.policy.rollouts import Rollouts
from rlcourse.training.functions.calling import call_for_tensor
from rlcourse.training.networks.forward import read_once, shared_prompts
from rlcourse.training.networks.gradient_checkpointing import (
    block_inputs_only,
    uses_gradient_checkpointing,
)

ROWS = 256  # completions read at once where no gradient is wanted


def value_head(policy: Policy) -> nn.Module:
    """A copy of the policy's body under a head of zeros: at first every score is 0.

    Raises:
        UserError: this kind of model has no variant with a scalar head.
    """
    config = copy.deepcopy(policy.model.config)
    config.num_labels, config.pad_token_id = 1, policy.pad_id
    try:
        model = AutoModelForSequenceClassification.from_config(config)
        model.base_model.load_state_dict(policy.model.base_model.state_dict())
        nn.init.zeros_(model.score.weight)
    except (ValueError, RuntimeError, AttributeError) as error:
        raise UserError(
            f"{type(policy.model).__name__} cannot be given a scalar head: choose another model, "
            "such as Qwen2.5 or SmolLM2"
        ) from error
    return model.to(device=policy.device, dtype=policy.model.dtype).eval()


def token_scores(model, rollouts: Rollouts) -> Tensor:
    """The head's numbers (N, T+1), from the prompt's last token to the completion's end."""
    read = partial(hidden_states, model.base_model)
    recompute = uses_gradient_checkpointing(model)
    prompts = None if recompute else shared_prompts(rollouts)
    if prompts is not None:
        hidden = read_once(read, model, prompts, rollouts)
        return model.score(hidden).squeeze(-1).float()
    with block_inputs_only(model) if recompute else nullcontext():
        mask = torch.cat([rollouts.prompt_mask, rollouts.mask], dim=1)
        hidden = read(
            keep=rollouts.tokens.shape[1] + 1,
            input_ids=torch.cat([rollouts.prompt_tokens, rollouts.tokens], dim=1),
            attention_mask=mask.long(),
            position_ids=token_positions(mask),
            use_cache=False,
        )
    return model.score(hidden).squeeze(-1).float()


class RewardModel:
    """What a completion is worth, learned from comparisons.

    Called with questions and completions it returns one reward each, so it can be the ``reward=``
    of a training run. `last_token_index(mask)` says where a row's reward is read.
    """

    def __init__(self, model: nn.Module, tokenizer, last_token_index: Callable = last_token_index):
        self.reader = Policy(model, tokenizer)  # it knows prompts and padding; it is never sampled
        self.last_token_index = last_token_index

    @classmethod
    def from_policy(
        cls, policy: Policy, last_token_index: Callable = last_token_index
    ) -> "RewardModel":
        """A reward model that starts from the policy's body and gives every completion 0."""
        return cls(value_head(policy), policy.tokenizer, last_token_index)

    @classmethod
    def load(cls, directory: str | Path, device: str | torch.device | None = None) -> "RewardModel":
        """A saved one, such as the ``reward_model/`` of a run directory.

        Raises:
            UserError: there is none in `directory`.
        """
        try:
            with no_progress_bars():
                model = AutoModelForSequenceClassification.from_pretrained(directory)
            if model.config.num_labels != 1:
                raise ValueError(f"it has {model.config.num_labels} outputs instead of one")
            tokenizer = AutoTokenizer.from_pretrained(directory)
        except (OSError, ValueError, RuntimeError) as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise UserError(
                f"{directory} holds no reward model ({reason}): name the reward_model directory "
                "of a finished run"
            ) from error
        return cls(model.to(choose_device(device)).eval(), tokenizer)

    def save(self, directory: str | Path) -> None:
        """Write it in Hugging Face format, completely or not at all."""
        self.reader.save(directory)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.reader.device

    def batch(
        self, questions: Sequence[str], completions: Sequence[str], system: str | None = None
    ) -> Rollouts:
        """Questions and their completions as tokens, each completion closed with EOS."""
        prompts = [self.reader.format_prompt(question, system=system) for question in questions]
        return self.reader.demonstrations(prompts, list(completions))

    def rewards(self, rollouts: Rollouts) -> Tensor:
        """The reward (N,) of each completion, differentiable."""
        scores = token_scores(self.reader.model, rollouts)[:, 1:]
        n = len(rollouts)
        index = call_for_tensor(self.last_token_index, (n,), mask=rollouts.mask)
        width = scores.shape[1]
        if index.dtype != torch.long or int(index.min()) < 0 or int(index.max()) >= width:
            raise UserError(
                "the function last_token_index must return positions in its rows: whole numbers "
                f"(long) from 0 to {width - 1}"
            )
        return scores[torch.arange(n, device=scores.device), index]

    @torch.no_grad()
    def __call__(
        self, questions: Sequence[str], completions: Sequence[str], system: str | None = None
    ) -> Tensor:
        """The reward (N,) of each of `completions` as an answer to its question."""
        some = [slice(start, start + ROWS) for start in range(0, len(completions), ROWS)]
        rewards = [self.rewards(self.batch(questions[i], completions[i], system)) for i in some]
        return torch.cat(rewards) if rewards else torch.zeros(0, device=self.device)
