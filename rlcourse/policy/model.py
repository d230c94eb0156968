"""A policy: a causal language model with its tokenizer, which samples and scores completions."""

import copy
import os
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rlcourse.algorithms.policies import sample_tokens, token_entropy, token_logprobs
from rlcourse.errors import UserError
from rlcourse.policy.decoding import token_positions
from rlcourse.policy.large_vocabulary import score_completions
from rlcourse.policy.loading import (
    attend_to_any_length,
    load_model_and_tokenizer,
    no_progress_bars,
)
from rlcourse.policy.prompts import format_prompt
from rlcourse.policy.rollouts import Rollouts
from rlcourse.policy.sampler import sample_completions


class Policy(nn.Module):
    """πθ(completion | prompt) for any Hugging Face causal LM.

    `model` is the Hugging Face model and `tokenizer` its tokenizer; training updates
    `policy.parameters()`. Dropout, where a model has any, follows `train()` and `eval()`.

    A subclass may bring its own `sample_tokens` and `token_logprobs`, which lesson 01 does with the
    student's: every completion is then drawn, and scored, with these.
    """

    static_cache: bool | None = None  # how it decodes; see `sample_completions`
    template: Mapping[str, Any] = {}  # arguments of the chat template
    sample_tokens = staticmethod(sample_tokens)
    token_logprobs = staticmethod(token_logprobs)

    def __init__(self, model: nn.Module, tokenizer):
        super().__init__()
        attend_to_any_length()
        self.model: Any = model  # a Hugging Face model: its methods are no Module's
        self.tokenizer = tokenizer
        self.eos_ids = _eos_ids(model, tokenizer)
        self.pad_id = _pad_id(tokenizer, self.eos_ids)

    @classmethod
    def load(
        cls,
        name: str | os.PathLike = "tiny",
        device: str | torch.device | None = None,
        dtype: str | torch.dtype | None = None,
    ) -> "Policy":
        """Load the embedded model ("tiny"), a directory, or a model of the Hugging Face hub.

        A GGUF file is read into an ordinary model, and the directory of a LoRA adapter is loaded as
        its base model with the adapter merged into the weights.
        The device is the first available of CUDA, MPS and the CPU; a model of fewer than two
        million weights, such as the embedded one, stays on the CPU unless `device` says otherwise.
        Weights are float32 unless `dtype` says otherwise ("bfloat16" halves the memory on a GPU).
        Raises UserError if the name, the files, the device or the dtype cannot be used.
        """
        return cls(*load_model_and_tokenizer(name, device, dtype))

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device

    # Text and tokens

    def format_prompt(self, question: str, system: str | None = None) -> str:
        """The question as this model expects it; see `rlcourse.policy.prompts.format_prompt`."""
        return format_prompt(self.tokenizer, question, system, self.template)

    def encode_prompts(self, prompts: list[str]) -> tuple[Tensor, Tensor]:
        """Tokens (B, P) long and mask (B, P) bool, left-padded, one BOS if the model has one."""
        return self.pad([self._prompt_ids(prompt) for prompt in prompts], left=True)

    def _prompt_ids(self, prompt: str) -> list[int]:
        bos, eos = self.tokenizer.bos_token, self.tokenizer.eos_token
        has_bos = bool(bos) and prompt.startswith(bos)  # a chat template wrote it
        ids = self.tokenizer(prompt, add_special_tokens=not has_bos)["input_ids"]
        if ids and ids[-1] == self.tokenizer.eos_token_id and not prompt.endswith(eos):
            ids = ids[
                :-1
            ]  # a tokenizer that closes every text would end the answer before it began
        if not ids:
            raise UserError("A prompt has no tokens: give each prompt some text.")
        return ids

    def demonstrations(self, prompts: list[str], completions: list[str]) -> Rollouts:
        """Given texts as a batch of one completion per prompt, each closed with EOS.

        They were not sampled, so their `old_logprobs` are 0.
        """
        eos = [self.tokenizer.eos_token_id] if self.tokenizer.eos_token_id is not None else []
        prompt_tokens, prompt_mask = self.encode_prompts(prompts)
        tokens, mask = self.pad(
            [
                self.tokenizer(text, add_special_tokens=False)["input_ids"] + eos
                for text in completions
            ],
            left=False,
        )
        zeros = torch.zeros(tokens.shape, device=self.device)
        return Rollouts(prompt_tokens, prompt_mask, tokens, mask, zeros, group_size=1)

    def pad(self, sequences: list[list[int]], left: bool) -> tuple[Tensor, Tensor]:
        """Lists of ids as tokens (N, L) long and mask (N, L) bool, padded on one side."""
        if not sequences:
            raise UserError("There is no text to encode: give at least one prompt.")
        width = max(map(len, sequences))
        tokens = torch.full((len(sequences), width), self.pad_id)
        mask = torch.zeros(len(sequences), width, dtype=torch.bool)
        for row, ids in enumerate(sequences):
            place = slice(width - len(ids), width) if left else slice(0, len(ids))
            tokens[row, place] = torch.tensor(ids, dtype=torch.long)
            mask[row, place] = True
        return tokens.to(self.device), mask.to(self.device)

    def decode(self, rollouts: Rollouts) -> list[str]:
        """The text of the completions, without EOS and other special tokens."""
        texts = []
        for tokens, mask in zip(rollouts.tokens.tolist(), rollouts.mask.tolist(), strict=True):
            ids = [token for token, real in zip(tokens, mask, strict=True) if real]
            if ids and ids[-1] in self.eos_ids:
                ids.pop()
            texts.append(self.tokenizer.decode(ids, skip_special_tokens=True))
        return texts

    # The two operations that reinforcement learning needs

    def sample(
        self,
        prompts: list[str],
        group_size: int = 1,
        max_tokens: int = 64,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        generator: torch.Generator | None = None,
        sample_tokens=None,
    ) -> Rollouts:
        """Draw `group_size` completions of each prompt, without gradient and without dropout.

        See `sample_completions` for what `old_logprobs` are under `top_k` and `top_p`, and for
        `sample_tokens`. Raises UserError if the prompt and `max_tokens` exceed the context.
        """
        return self.complete(
            *self.encode_prompts(prompts),
            group_size=group_size,
            max_tokens=max_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            generator=generator,
            sample_tokens=sample_tokens or self.sample_tokens,
        )

    def complete(self, prompt_tokens: Tensor, prompt_mask: Tensor, **how) -> Rollouts:
        """`sample` from prompts that are tokens already, as `pad` makes them; `how` as there."""
        self.require_room(prompt_tokens.shape[1], how["max_tokens"])
        was_training = self.model.training
        self.model.eval()
        try:
            return sample_completions(
                self.model,
                prompt_tokens,
                prompt_mask,
                eos_ids=self.eos_ids,
                pad_id=self.pad_id,
                static_cache=self.static_cache,
                **how,
            )
        finally:
            self.model.train(was_training)

    def check_context(self, prompts: list[str], max_tokens: int) -> None:
        """Raise UserError if one of the prompts and `max_tokens` exceed the model's context."""
        self.require_room(max(len(self._prompt_ids(prompt)) for prompt in prompts), max_tokens)

    def require_room(self, longest: int, max_tokens: int) -> None:
        """Raise UserError if so many tokens after so many exceed the model's context."""
        context = getattr(self.model.config, "max_position_embeddings", None)
        if context is not None and longest + max_tokens > context:
            remedy = f"lower max_tokens to {context - longest} or shorten the prompt."
            if longest >= context:
                remedy = "shorten the system message, or choose a model with a longer context."
            raise UserError(
                f"The longest prompt has {longest} tokens and max_tokens is {max_tokens}, "
                f"but this model reads at most {context}: {remedy}"
            )

    def logprobs(self, rollouts: Rollouts) -> Tensor:
        """Log-probs (N, T) in nats of the completions at `rollouts.temperature`, 0 on padding.

        Differentiable in the policy's parameters.
        """
        return self.logprobs_of(rollouts, partial(self._read, rollouts))

    def logprobs_of(self, rollouts: Rollouts, run: Callable) -> Tensor:
        """`logprobs`, from what ``run(read)`` gives at the prompt's last token and after it."""

        def score(logits: Tensor, tokens: Tensor) -> tuple[Tensor, ...]:
            return (self.token_logprobs(logits, tokens, rollouts.temperature),)

        (logprobs,) = score_completions(self.model, run, _scored(rollouts), score)
        return logprobs.masked_fill(~rollouts.mask, 0.0)

    def logprobs_and_entropy(self, rollouts: Rollouts) -> tuple[Tensor, Tensor]:
        """`logprobs` and the entropy (N, T) in nats of the distributions they come from."""

        def score(logits: Tensor, tokens: Tensor) -> tuple[Tensor, ...]:
            logprobs = self.token_logprobs(logits, tokens, rollouts.temperature)
            return logprobs, token_entropy(logits[:, :-1] / rollouts.temperature)

        run = partial(self._read, rollouts)
        found = score_completions(self.model, run, _scored(rollouts), score)
        logprobs, entropy = (x.masked_fill(~rollouts.mask, 0.0) for x in found)
        return logprobs, entropy

    def _read(self, rollouts: Rollouts, read: Callable) -> Tensor:
        """What `read` makes of the rows, from the prompt's last token to the end (N, T+1, …)."""
        mask = torch.cat([rollouts.prompt_mask, rollouts.reads], dim=1)
        return read(
            keep=rollouts.tokens.shape[1] + 1,
            input_ids=torch.cat([rollouts.prompt_tokens, rollouts.tokens], dim=1),
            attention_mask=mask.long(),
            position_ids=token_positions(mask),
            use_cache=False,
        )

    # Copies

    def clone(self, frozen: bool = False) -> "Policy":
        """An independent copy; `frozen` makes it a reference: eval mode, no gradients."""
        twin = type(self)(copy.deepcopy(self.model), self.tokenizer)
        twin.static_cache = self.static_cache
        twin.template = self.template
        if frozen:
            twin.eval().requires_grad_(False)
        return twin

    def save(self, directory: str | os.PathLike) -> None:
        """Write model and tokenizer in Hugging Face format, completely or not at all.

        An earlier model there is replaced. Raises UserError if the directory holds anything else or
        cannot be written.
        """
        directory = Path(directory).expanduser().absolute()
        _check_replaceable(directory)
        try:
            directory.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(
                dir=directory.parent, prefix=f".{directory.name}-"
            ) as scratch:
                fresh, old = Path(scratch) / "fresh", Path(scratch) / "old"
                with no_progress_bars():
                    self.model.save_pretrained(fresh)
                self.tokenizer.save_pretrained(fresh)
                if directory.exists():
                    directory.rename(old)
                fresh.rename(directory)
        except (OSError, RuntimeError) as error:  # a full disk reaches us as either
            raise UserError(
                f"The model could not be written to {directory} ({error}): "
                "free some space or choose another directory."
            ) from error


def _scored(rollouts: Rollouts) -> Tensor:
    """The completions' tokens after the prompt's last one (N, T+1)."""
    return torch.cat([rollouts.prompt_tokens[:, -1:], rollouts.tokens], dim=1)


def _check_replaceable(directory: Path) -> None:
    """An empty directory or an earlier model may be replaced; other files may not."""
    if not directory.exists():
        return
    contents = list(directory.iterdir()) if directory.is_dir() else [directory]
    is_model = (directory / "config.json").is_file() and all(entry.is_file() for entry in contents)
    if contents and not is_model:
        raise UserError(f"{directory} holds other files: choose an empty directory for the model.")


def _eos_ids(model: nn.Module, tokenizer) -> tuple[int, ...]:
    """Every token that ends a completion: chat models often have two."""
    ids = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    ids = [] if ids is None else [ids] if isinstance(ids, int) else list(ids)
    return tuple(dict.fromkeys([*ids, *filter(_is_id, [tokenizer.eos_token_id])]))


def _pad_id(tokenizer, eos_ids: tuple[int, ...]) -> int:
    """What fills padded positions: masks mark the padding, so EOS is good enough."""
    if tokenizer.pad_token_id is not None:
        return tokenizer.pad_token_id
    if eos_ids:
        return eos_ids[-1]
    raise UserError(
        "This model's tokenizer has neither a padding nor an end-of-text token: "
        "set `tokenizer.pad_token` to one of its tokens and save it with the model."
    )


def _is_id(token_id) -> bool:
    return token_id is not None
