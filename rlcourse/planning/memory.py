"""Where a run's memory goes, as an estimate whose every line can be checked by hand.

Weights, gradients and AdamW's averages are 4 bytes a number (float32); under ``dtype: bfloat16``
autocast keeps a rounded copy of each matrix during a pass.

Activations that a backward pass needs, in bytes for one token of one layer, are

    a_H·hidden + a_Q·(heads · head size) + a_I·intermediate + 8 + 4·heads + a_S·(row's length)

with coefficients that were fitted to what ``torch.autograd.graph.saved_tensors_hooks`` sees in
random Llamas of nine widths, measured on the CPU. Nothing is left over, because each coefficient
counts tensors (with a single key-value head one is saved). Under bfloat16, for example, a_H = 26:
two norms keep input and output in float32 (16) and five linear maps their own rounded inputs (10).
The mask of padding is kept by every layer (a_S); adapters add to it by their rank. Under gradient
checkpointing a layer keeps its input alone; the layer that is computed again is left out, because
the logits of a large vocabulary take more. Logits take 12 bytes at the peak: three float32 copies,
logits at their temperature, log-probs and the gradient, measured by adding up what is alive. Where
they are many they are made a piece at a time (policy/large_vocabulary.py), and the output layer's
gradient is then a sum, in addition to the piece's own.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from rlcourse.planning.work import Work
from rlcourse.training.recipes.recipe import teacher_recipe

# 16 bit, adapters → a_H, a_Q, a_I, a_S, and per rank of adapters
KEPT = {
    (True, False): (26, 8, 8, 2, 0),
    (False, False): (24, 16, 16, 4, 0),
    (True, True): (18, 10, 8, 2, 14),
    (False, True): (16, 16, 16, 4, 28),
}
LOGITS_TRAINING = 12  # bytes for each word of the vocabulary and completion token
LOGITS_AT_ONCE = 2**26  # as policy/large_vocabulary.py has it, which takes seconds to import
LOGITS_SAMPLING = 16  # for each word and row: logits, scaled, probabilities, the draw's own


@dataclass(frozen=True)
class Line:
    """One named amount, and the arithmetic that gives it."""

    name: str
    arithmetic: str
    amount: float  # bytes, or seconds


def total(lines: Iterable[Line]) -> float:
    """The sum of some lines."""
    return sum(line.amount for line in lines)


@dataclass(frozen=True)
class Memory:
    """What a run keeps all the time, and what comes on top by turns, each moment by its name."""

    always: list[Line]
    moments: dict[str, list[Line]]

    @property
    def worst(self) -> str:
        """The moment that needs most."""
        return max(self.moments, key=lambda name: total(self.moments[name]))

    @property
    def peak(self) -> float:
        """Bytes at the worst moment."""
        return total(self.always) + total(self.moments[self.worst])


def memory_of(work: Work) -> Memory:
    """The memory of a run on one device."""
    method, moments = work.recipe.method, {}
    if method.samples or method.compares_pairs:
        moments["sampling"] = decoding(work, work.sampled_rows)
    return Memory(_always(work), moments | _training(work))


def _always(work: Work) -> list[Line]:
    recipe, n, trained = work.recipe, work.shape.parameters, work.trained
    size = 2 if recipe.lora and work.rounds else 4  # what adapters freeze may be rounded for good
    lines = [Line("weights", f"{size} B x {n:,}", n * size)]
    if recipe.lora:
        rank = recipe.lora["rank"]
        lines.append(Line("adapters", f"4 B x {trained:,} of rank {rank}", 4 * trained))
    if not recipe.method.trains_policy:
        lines.append(Line("reward model", f"4 B x {trained:,}", 4 * trained))
    size = average_bytes(work)
    lines.append(Line("AdamW", f"2 averages x {size:.3g} B x {trained:,}", 2 * size * trained))
    if recipe.method.critic:
        m, both = work.scalar, 2 * size
        lines.append(Line("critic", f"(4 B + AdamW's {both:.3g} B) x {m:,}", (4 + both) * m))
    if recipe.beta > 0 and recipe.method.trains_policy and not recipe.lora:
        shape = work.shape  # under bfloat16 its matrices are kept rounded, except an embedding
        rounded = work.rounds * (shape.matrices + shape.biases - shape.tied * shape.words)
        told = f"2 B x {rounded:,} + 4 B x {n - rounded:,}, frozen"
        lines.append(Line("reference", told, 4 * n - 2 * rounded))
    if work.teacher:
        k, size = work.teacher.parameters, 2 if work.rounds and not teacher_recipe(recipe) else 4
        lines.append(Line("teacher", f"{size} B x {k:,}, frozen", size * k))
    return lines


def average_bytes(work: Work) -> float:
    """Bytes of a number in one of AdamW's averages; 8 bits come with a scale for every 256."""
    return 4 if work.recipe.optimizer == "adamw" else 1 + 4 / 256


def _copies(work: Work, without: int = 0) -> list[Line]:
    """The rounded matrices that autocast keeps until the pass is over, `without` so many."""
    if not work.rounds:
        return []
    shape = work.shape
    n = work.trained if work.recipe.lora else shape.matrices + shape.biases - without
    return [Line(f"{work.recipe.dtype} copies", f"2 B x {n:,}", 2 * n)]


def decoding(work: Work, rows: int) -> list[Line]:
    """What it takes to write `rows` completions at the same time."""
    shape, lines = work.shape, _copies(work)
    places = work.lengths.longest_prompt + work.written
    size = 2 if work.rounds else 4
    told = f"2 x {size} B x {shape.cached_numbers:,} x {rows} rows x {places} places"
    lines.append(Line("KV cache", told, 2 * size * shape.cached_numbers * rows * places))
    told = f"{LOGITS_SAMPLING} B x {rows} rows x {shape.vocabulary:,} words"
    return [*lines, Line("logits", told, LOGITS_SAMPLING * rows * shape.vocabulary)]


def _training(work: Work) -> dict[str, list[Line]]:
    """The two moments of an update that can be its worst."""
    recipe, words, trained = work.recipe, work.shape.words, work.trained
    few = recipe.method.trains_policy and logits_at_once(work) < all_logits(work)
    copies = [] if recipe.gradient_checkpointing else _copies(work, words * few)
    gradients = Line("gradients", f"4 B x {trained:,}", 4 * trained)
    logits = _training_logits(work) if recipe.method.trains_policy else []
    so_far = [gradients] if work.in_pieces else []  # of the pieces before this one
    moments = {"training: after the forward pass": [*copies, *so_far, activations(work), *logits]}
    if not recipe.lora:
        embedding = Line("embedding's gradient", f"2 x 4 B x {words:,}, not yet added", 8 * words)
        moments["training: end of the backward pass"] = [*copies, gradients, embedding]
        if copies and work.in_pieces:  # autograd comes to an earlier piece's copies at the end
            n = work.shape.matrices + work.shape.biases - words * few
            rounded = Line("rounded gradients", f"2 B x {n:,}", 2 * n)
            moments["training: end of the backward pass"].append(rounded)
    return moments


def all_logits(work: Work) -> int:
    """Numbers in the logits of a piece of the batch."""
    return work.shape.vocabulary * work.piece * work.lengths.longest_completion


def logits_at_once(work: Work) -> int:
    """How many of these there are at the same time: those of whole rows."""
    length, vocabulary = work.lengths.longest_completion, work.shape.vocabulary
    learned = 0 if work.recipe.lora else work.shape.words
    if all_logits(work) <= LOGITS_AT_ONCE + learned:
        return all_logits(work)
    return vocabulary * length * max(1, LOGITS_AT_ONCE // vocabulary // (length + 1))


def _training_logits(work: Work) -> list[Line]:
    """The logits; made in pieces, they come with the output layer's gradient and a piece's own,
    which under bfloat16 is rounded, as its weights are."""
    tokens, vocabulary = logits_at_once(work) // work.shape.vocabulary, work.shape.vocabulary
    few = logits_at_once(work) < all_logits(work)
    told = f"{LOGITS_TRAINING} B x {tokens:,} tokens{' at once' * few} x {vocabulary:,} words"
    lines = [Line("logits", told, LOGITS_TRAINING * tokens * vocabulary)]
    if few and not work.recipe.lora:
        size, words = 12 if work.rounds else 8, work.shape.words
        told = f"{size} B x {words:,}, so far and of some tokens"
        lines.append(Line("output layer", told, size * words))
    return lines


def kept_by_a_layer(work: Work) -> int:
    """Bytes that one layer keeps of one token for the backward pass."""
    shape, lora = work.shape, work.recipe.lora
    h, q, i, s, r = KEPT[work.rounds, bool(lora)]
    width = work.lengths.longest_prompt + work.lengths.longest_completion
    wide = h * shape.hidden + q * shape.heads * shape.head_size + i * shape.intermediate
    return wide + 8 + 4 * shape.heads + s * width + (r * lora["rank"] if lora else 0)


def activations(work: Work) -> Line:
    """What the backward pass of one piece needs from its forward pass."""
    layers, tokens, one = work.shape.layers, work.piece_tokens, kept_by_a_layer(work)
    size = 2 if work.rounds else 4
    if work.recipe.gradient_checkpointing:
        size = 2 if work.recipe.lora and work.rounds else 4
        told = f"{tokens:,} tokens x {layers} layers x {size} B x {work.shape.hidden}"
        return Line("layers' inputs", told, tokens * layers * size * work.shape.hidden)
    amount, told = layers * one * tokens, f"{layers} layers x {tokens:,} tokens x {one:,} B"
    if work.piece_prompts < work.piece:
        # Keys and values of a shared prompt, repeated for every row and query head that reads it.
        heads = work.shape.heads * work.shape.head_size
        again = layers * 2 * size * heads * work.piece * work.lengths.longest_prompt
        amount, told = amount + again, f"{told} + {again / 1e9:.2f} GB of shared keys"
    return Line("activations", told, amount)
