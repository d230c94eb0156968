"""What a recipe asks of a machine, in rows and tokens: the numbers that memory and time come from.

Completions are taken to be as long as the recipe allows. Real ones are shorter, so that a plan
says what a run takes at most.
"""

import json
from dataclasses import dataclass
from functools import cache
from math import ceil

from rlcourse.planning.shapes import ModelShape, model_shape
from rlcourse.training.recipes.recipe import teacher_recipe
from rlcourse.training.recipes.settings import Recipe

# GSM8K's 7,473 training problems, counted with Qwen's vocabulary, whose digits are tokens of
# their own as are SmolLM2's.
GSM8K_QUESTION = (60, 212)  # tokens on average and at most
GSM8K_ANSWER = (122, 453)
QUESTION_CHARACTERS, ANSWER_CHARACTERS = 3.9, 2.4  # of GSM8K, per token
OBSERVATION = 8  # tokens of what an environment says, with the template's marks; assumed
CHAT_TEMPLATE = 20  # tokens that a chat template puts around a message; assumed


@dataclass(frozen=True)
class Lengths:
    """Tokens of prompts and completions."""

    prompt: int  # on average
    longest_prompt: int
    completion: int  # on average
    longest_completion: int


@dataclass(frozen=True)
class Work:
    """A recipe's batches, as rows and tokens."""

    recipe: Recipe
    shape: ModelShape
    lengths: Lengths
    rows: int  # that one optimizer step learns from
    piece: int  # of these, read at once: the micro-batch
    piece_prompts: int  # prompts read for them: one for a group, where the group is together
    samples: bool  # whether training steps sample completions
    imitates: bool  # whether they learn from demonstrations instead
    reference: bool  # whether a frozen reference is kept
    teacher: ModelShape | None = None  # of a model that only scores

    @property
    def written(self) -> int:
        """Tokens of the longest completion that is sampled; of an episode, those of all turns."""
        return self.recipe.max_tokens if self.imitates else self.lengths.longest_completion

    @property
    def in_pieces(self) -> bool:
        """Whether the rows are read in pieces, which takes a forward pass more, but for
        `known_updates`."""
        return self.piece < self.rows

    @property
    def known_updates(self) -> float:
        """How many of a step's passes over its rows know their log-probs from sampling: that of
        the first minibatch, where the policy is still the one that sampled it."""
        fresh = self.samples and not self.recipe.sampler_staleness
        return fresh / self.minibatches

    @property
    def readings(self) -> int:
        """Passes through the model that reading a piece takes: of prompts that its rows share, and
        of completions."""
        return 2 if self.piece_prompts < self.piece else 1

    @property
    def rounds(self) -> bool:
        """Whether matrices are multiplied in 16 bits."""
        return self.recipe.dtype != "float32"

    @property
    def in_graphs(self) -> bool:
        """Whether a GPU writes tokens by repeating a CUDA graph; the planned models all can."""
        return self.recipe.static_cache is not False

    @property
    def fused(self) -> bool:
        """Whether tokens are written in few kernels: policy/fused.py, which knows no adapters."""
        asked = self.recipe.fused_decoding
        return bool(
            self.in_graphs and not self.recipe.lora and (self.rounds if asked is None else asked)
        )

    @property
    def minibatches(self) -> int:
        """Optimizer steps in a pass over a step's rows; pairs are not divided."""
        return self.recipe.minibatches

    @property
    def sampled_rows(self) -> int:
        """Completions that are written at the same time."""
        return self.recipe.prompts_per_step * self.recipe.group_size

    @property
    def piece_tokens(self) -> int:
        """Tokens of a piece at their longest, a shared prompt counted once."""
        prompts = self.piece_prompts * self.lengths.longest_prompt
        return prompts + self.piece * self.lengths.longest_completion

    @property
    def step_tokens(self) -> float:
        """Tokens that reading all rows of a step once takes."""
        share = self.piece_prompts / self.piece
        rows = self.rows * self.minibatches
        return rows * share * self.lengths.prompt + self.completion_tokens

    @property
    def completion_tokens(self) -> float:
        """Of these, those of completions."""
        return self.rows * self.minibatches * self.lengths.completion


def work_of(recipe: Recipe, prompt: int | None = None, completion: int | None = None) -> Work:
    """The work of a step of `recipe`; `prompt` and `completion` are mean lengths, if known.

    Raises UserError where the policy's shape cannot be found, or the task's data.
    """
    method = recipe.method
    rows = ceil(method.rows(recipe.prompts_per_step, recipe.group_size) / recipe.minibatches)
    piece = min(recipe.micro_batch or rows, rows)
    return Work(
        recipe,
        model_shape(recipe.policy),
        lengths_of(recipe, prompt, completion),
        rows,
        piece,
        prompts_of(piece, rows, recipe, method),
        samples=method.samples,
        imitates=method.imitates,
        reference=(recipe.beta > 0 and method.trains_policy) and not recipe.lora,
        teacher=model_shape(teacher_named(recipe)) if method.taught else None,
    )


def teacher_named(recipe: Recipe) -> str:
    """The model that has the teacher's shape."""
    return recipe.teacher if teacher_recipe(recipe) is None else recipe.policy


def prompts_of(piece: int, rows: int, recipe: Recipe, method) -> int:
    """Prompts read for a piece: groups share theirs, where activations are kept (forward.py)."""
    if recipe.gradient_checkpointing or method.imitates:
        return piece
    if method.compares_pairs:
        return piece // 2 if piece == rows else piece  # a pair's halves share a prompt
    mixed = recipe.minibatches > 1 and piece == rows  # random rows: any group may be among them
    size = recipe.group_size
    across = piece % size and size % piece  # pieces that begin in the middle of a group
    prompts = min(piece, recipe.prompts_per_step) if mixed else ceil(piece / size) + bool(across)
    return prompts if 2 * prompts <= piece else piece


def lengths_of(recipe: Recipe, prompt: int | None, completion: int | None) -> Lengths:
    """Tokens of the task's prompts and of completions, GSM8K's by heart, others by characters."""
    questions, answers, turns = GSM8K_QUESTION, GSM8K_ANSWER, False
    if recipe.task != "gsm8k":
        options = json.dumps(recipe.task_options, sort_keys=True)
        questions, answers, turns = _task_tokens(recipe.task, recipe.data, recipe.seed, options)
    around = CHAT_TEMPLATE + ceil(len(recipe.system or "") / QUESTION_CHARACTERS)
    mean, longest = (around + n for n in questions)
    if prompt is not None:
        mean, longest = prompt, max(prompt, longest)
    if recipe.method.imitates:
        written = (completion or answers[0] + 1, max(completion or 0, answers[1] + 1))  # with EOS
    else:
        most = recipe.max_tokens
        if turns:  # an episode is one completion, with what is observed between its turns
            most = recipe.max_turns * most + (recipe.max_turns - 1) * OBSERVATION
        written = (min(completion or most, most), most)
    return Lengths(mean, longest, *written)


@cache
def _task_tokens(name: str, data: str | None, seed: int, options: str):
    """Tokens of a task's questions and of its demonstrations, and whether it is played in turns."""
    from rlcourse.tasks import load_task

    task = load_task(name, data, seed, **json.loads(options))
    shown = task.demonstrations or task.train
    questions = _tokens([p.question for p in task.train], QUESTION_CHARACTERS)
    answers = _tokens([p.answer for p in shown], ANSWER_CHARACTERS)
    return questions, answers, task.environment is not None


def _tokens(texts: list[str], characters: float) -> tuple[int, int]:
    lengths = [len(text) for text in texts]
    return ceil(sum(lengths) / len(lengths) / characters), ceil(max(lengths) / characters)
