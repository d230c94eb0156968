"""A policy that takes turns: what `rollout_env` of lesson 14 speaks with.

Everything is a list of token ids, kept as it was drawn or read. For the environment, ids are turned
into text; the text that the policy wrote is never turned back into ids, because a word can be cut
into tokens in several ways, and a tokenizer produces only one of them.
"""

import torch
from jinja2 import TemplateError

from rlcourse.policy.model import Policy
from rlcourse.policy.sampler import sample_completions

MARK = "†"  # stands for a turn of the policy when a template is asked what follows one


class Speaker:
    """`policy` and how it draws: at most `max_tokens` per turn, at `temperature`, from `generator`.

    `system` is put before an episode's first words; `top_k` and `top_p` narrow what is drawn.

    What an environment says becomes a message of the user, with everything that the model's chat
    template puts around it, including the beginning of the policy's next turn.
    """

    def __init__(
        self,
        policy: Policy,
        max_tokens: int = 16,
        temperature: float = 1.0,
        generator: torch.Generator | None = None,
        system: str | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
    ):
        self.system, self.top_k, self.top_p = system, top_k, top_p
        self.policy, self.max_tokens = policy, max_tokens
        self.temperature, self.generator = temperature, generator
        self.before, self.after = self._around_observations()

    def prompt(self, words: str) -> list[int]:
        """The ids of an episode's first words, as the policy reads them."""
        return self.policy.encode_prompts([self.policy.format_prompt(words, self.system)])[0][
            0
        ].tolist()

    def observation(self, words: str) -> list[int]:
        """The ids of what the environment says later on."""
        return self.encode(f"{self.before}{words}{self.after}")

    def encode(self, text: str) -> list[int]:
        """A text cut into tokens, with nothing added."""
        return self.policy.tokenizer(text, add_special_tokens=False)["input_ids"]

    def demonstrated(self, text: str) -> list[int]:
        """A turn that a program wrote for the policy: its ids, closed with EOS."""
        return [*self.encode(text), self.policy.tokenizer.eos_token_id]

    def text(self, tokens: list[int]) -> str:
        """The words of a turn, without EOS and other special tokens."""
        return self.policy.tokenizer.decode(tokens, skip_special_tokens=True)

    def write(self, contexts: list[list[int]]) -> list[tuple[list[int], list[float]]]:
        """The policy's next turn after each context: its ids, EOS included, and their log-probs.

        Log-probs are in nats at `temperature`, or at 1 where it is 0 (greedy). A turn of
        `max_tokens` may have no EOS. Raises UserError if the context is full.
        """
        policy = self.policy
        width = max(map(len, contexts))
        policy.require_room(width, self.max_tokens)
        was_training = policy.model.training
        policy.model.eval()
        try:
            drawn = sample_completions(
                policy.model,
                *policy.pad(contexts, left=True),
                max_tokens=self.max_tokens,
                temperature=self.temperature,
                top_k=self.top_k,
                top_p=self.top_p,
                eos_ids=policy.eos_ids,
                pad_id=policy.pad_id,
                generator=self.generator,
            )
        finally:
            policy.model.train(was_training)
        lengths = drawn.mask.sum(1).tolist()
        rows = zip(drawn.tokens.tolist(), drawn.old_logprobs.tolist(), lengths, strict=True)
        return [(tokens[:n], logprobs[:n]) for tokens, logprobs, n in rows]

    def _around_observations(self) -> tuple[str, str]:
        """What the chat template writes between two turns of the policy, around a user's words."""
        tokenizer = self.policy.tokenizer
        if not tokenizer.chat_template:
            return "\n", "\n"
        messages = [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": MARK},
            {"role": "user", "content": MARK},
        ]
        try:
            text = tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True
            )
            _, between, after = text.split(MARK)
        except (TemplateError, ValueError):
            return "\n", "\n"
        return between.removeprefix(tokenizer.eos_token or ""), after
