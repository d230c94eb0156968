"""What a recipe asks of a machine, in rows and tokens: the numbers that memory and time come from.

Completions are taken to be as long as the recipe allows. Real ones are shorter, so that a plan
says what a run takes at most.
"""

from dataclasses import dataclass
from math import ceil

from rlcourse.planning.shapes import ModelShape, model_shape
from rlcourse.training.recipes.recipe import teacher_recipe
from rlcourse.training.recipes.settings import Recipe

# GSM8K's 7,473 training problems, counted with Qwen's vocabulary, whose digits are tokens of
# their own as are SmolLM2's.
GSM8K_QUESTION = (60, 212)  # tokens on average and at most
GSM8K_ANSWER = (122, 453)
QUESTION_CHARACTERS = 3.9  # of GSM8K, per token
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
    teacher: ModelShape | None = None  # of a model that only scores

    @property
    def trained(self) -> int:
        """Parameters of the policy (or reward model) that learn."""
        recipe = self.recipe
        if recipe.lora:
            return self.shape.adapter_parameters(recipe.lora["rank"], recipe.lora["targets"])
        return self.shape.parameters if recipe.method.trains_policy else self.scalar

    @property
    def scalar(self) -> int:
        """Parameters of the policy's body under a scalar head: a critic, or a reward model."""
        return self.shape.body + self.shape.hidden

    @property
    def written(self) -> int:
        """Tokens of the longest completion that is sampled."""
        imitates = self.recipe.method.imitates
        return self.recipe.max_tokens if imitates else self.lengths.longest_completion

    @property
    def in_pieces(self) -> bool:
        """Whether the rows are read in pieces, which takes a forward pass more if the policy is no
        longer the one that sampled them."""
        return self.piece < self.rows

    @property
    def rounds(self) -> bool:
        """Whether matrices are multiplied in 16 bits."""
        return self.recipe.dtype != "float32"

    @property
    def in_graphs(self) -> bool:
        """Whether a GPU writes tokens by repeating a CUDA graph; the planned models all can."""
        return self.recipe.static_cache is not False

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
    def completion_tokens(self) -> int:
        """Tokens of completions that reading all rows of a step once takes."""
        return self.rows * self.recipe.minibatches * self.lengths.completion

    @property
    def step_tokens(self) -> float:
        """These, and those of prompts."""
        prompts = self.rows * self.recipe.minibatches * self.piece_prompts / self.piece
        return prompts * self.lengths.prompt + self.completion_tokens


def work_of(recipe: Recipe, completion: int | None = None) -> Work:
    """The work of a step of `recipe`; `completion` is the mean length, if known.

    Raises UserError where the policy's shape cannot be found.
    """
    rows = recipe.method.rows(recipe.prompts_per_step, recipe.group_size)
    rows = ceil(rows / recipe.minibatches)
    piece = min(recipe.micro_batch or rows, rows)
    teacher = None
    if recipe.method.taught:
        made = teacher_recipe(recipe) is not None  # by a recipe, from the policy
        teacher = model_shape(recipe.policy if made else recipe.teacher)
    return Work(
        recipe,
        model_shape(recipe.policy),
        lengths_of(recipe, completion),
        rows,
        piece,
        prompts_of(piece, rows, recipe),
        teacher,
    )


def prompts_of(piece: int, rows: int, recipe: Recipe) -> int:
    """Prompts read for a piece: groups share theirs, where activations are kept (forward.py)."""
    if recipe.gradient_checkpointing or recipe.method.imitates:
        return piece
    if recipe.method.compares_pairs:
        return piece // 2 if piece == rows else piece  # a pair's halves share a prompt
    size = recipe.group_size
    across = piece % size and size % piece  # pieces that begin in the middle of a group
    prompts = ceil(piece / size) + bool(across)
    return prompts if 2 * prompts <= piece else piece


def lengths_of(recipe: Recipe, completion: int | None) -> Lengths:
    """Tokens of prompts and completions: GSM8K's, where this mean length does not say otherwise."""
    around = CHAT_TEMPLATE + ceil(len(recipe.system or "") / QUESTION_CHARACTERS)
    mean, longest = (around + n for n in GSM8K_QUESTION)
    most = GSM8K_ANSWER[1] + 1 if recipe.method.imitates else recipe.max_tokens  # with EOS
    usual = GSM8K_ANSWER[0] + 1 if recipe.method.imitates else most
    return Lengths(mean, longest, min(completion or usual, most), most)
