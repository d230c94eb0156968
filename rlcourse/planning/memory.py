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
checkpointing a layer keeps its input alone. Logits take 12 bytes at the peak: three float32 copies,
logits at their temperature, log-probs and the gradient, measured by adding up what is alive. Where
they are many they are made a piece at a time (policy/large_vocabulary.py), and the output layer's
gradient is then a sum, in addition to the piece's own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from rlcourse.planning.work import Work
from rlcourse.training.recipes.recipe import teacher_recipe

# 16 bit, adapters → a_H, a_Q, a_I, a_S, and per rank of adapters
KEPT = {
    (True, False): (26, 8, 8, 2, 0),
    (False, False): (24, 16, 16, 4, 0),
    (True, True): (18, 10, 8, 2, 14),
    (False, True): (16, 16, 16, 4, 28),
}
RECOMPUTED = {False: 1.2, True: 1.5}  # a layer's activations and gradients, without/with adapters
LOGITS_TRAINING = 12  # bytes for each word of the vocabulary and completion token
LOGITS_AT_ONCE = 2**26  # as policy/large_vocabulary.py has it, which takes seconds to import
LOGITS_SAMPLING = 16  # for each word and row: logits, scaled, probabilities, the draw's own
LOGITS_FILTERED = 40  # top-k and top-p also sort
PLACES = 8  # as policy/static_decoding.py has it


@dataclass(frozen=True)
class Line:
    """One named amount, and the arithmetic that gives it."""

    name: str
    arithmetic: str
    amount: float  # bytes, or seconds


@dataclass(frozen=True)
class Moment:
    """A moment of a step, and what is alive in it besides what always is."""

    name: str
    lines: tuple[Line, ...]

    @property
    def amount(self) -> float:
        """Bytes."""
        return total(self.lines)


@dataclass(frozen=True)
class Memory:
    """Bytes that a run keeps all the time, and what comes on top by turns."""

    always: tuple[Line, ...]
    moments: tuple[Moment, ...]

    @property
    def resident(self) -> float:
        """Bytes that are always taken."""
        return total(self.always)

    @property
    def worst(self) -> Moment:
        """The moment that needs most."""
        return max(self.moments, key=lambda moment: moment.amount)

    @property
    def peak(self) -> float:
        """Bytes at the worst moment."""
        return self.resident + self.worst.amount


def total(lines: tuple[Line, ...]) -> float:
    """The sum of some lines."""
    return sum(line.amount for line in lines)


def memory_of(work: Work) -> Memory:
    """The memory of a run on one device."""
    moments = list(_training(work))
    if work.samples or work.recipe.method.compares_pairs:
        lines = (*_copies_to_sample(work), *decoding(work, work.sampled_rows))
        moments.insert(0, Moment("sampling", lines))
    return Memory(_always(work), tuple(moments))


def trained_parameters(work: Work) -> int:
    """Parameters of the policy (or reward model) that learn."""
    if work.recipe.lora:
        return work.shape.adapter_parameters(work.recipe.lora["rank"], work.recipe.lora["targets"])
    return work.shape.parameters if work.recipe.method.trains_policy else scalar_parameters(work)


def scalar_parameters(work: Work) -> int:
    """Parameters of the policy's body under a scalar head: a critic, or a reward model."""
    return work.shape.body + work.shape.hidden


def weight_bytes(work: Work) -> int:
    """Bytes of one of the policy's weights: what adapters freeze may be rounded for good."""
    return 2 if work.recipe.lora and work.rounds else 4


def average_bytes(work: Work) -> float:
    """Bytes of a number in one of AdamW's averages; 8 bits come with a scale for every 256."""
    return 4 if work.recipe.optimizer == "adamw" else 1 + 4 / 256


def _always(work: Work) -> tuple[Line, ...]:
    recipe, n, trained = work.recipe, work.shape.parameters, trained_parameters(work)
    size = weight_bytes(work)
    lines = [Line("weights", f"{size} B x {n:,}", n * size)]
    if recipe.lora:
        lines.append(Line("adapters", f"4 B x {trained:,} of rank {_rank(work)}", 4 * trained))
    if not recipe.method.trains_policy:
        lines.append(Line("reward model", f"4 B x {trained:,}", 4 * trained))
    size = average_bytes(work)
    lines.append(Line("AdamW", f"2 averages x {size:.3g} B x {trained:,}", 2 * size * trained))
    if recipe.method.critic:
        m, both = scalar_parameters(work), 2 * size
        lines.append(Line("critic", f"(4 B + AdamW's {both:.3g} B) x {m:,}", (4 + both) * m))
    if work.reference:
        lines.append(reference_of(work))
    if work.teacher:
        k, size = work.teacher.parameters, 2 if work.rounds and not teacher_recipe(recipe) else 4
        lines.append(Line("teacher", f"{size} B x {k:,}, frozen", size * k))
    return tuple(lines)


def reference_of(work: Work) -> Line:
    """The frozen copy; under bfloat16 its matrices are kept rounded, except an embedding."""
    shape = work.shape
    rounded = shape.matrices + shape.biases - shape.tied * shape.vocabulary * shape.hidden
    rounded = rounded if work.rounds else 0
    rest = shape.parameters - rounded
    told = f"2 B x {rounded:,} + 4 B x {rest:,}" if rounded else f"4 B x {rest:,}"
    return Line("reference", f"{told}, frozen", 2 * rounded + 4 * rest)


def _copies(work: Work, but: int = 0) -> tuple[Line, ...]:
    """The rounded matrices that autocast keeps until the pass is over, `but` so many."""
    if not work.rounds:
        return ()
    shape = work.shape
    n = trained_parameters(work) if work.recipe.lora else shape.matrices + shape.biases - but
    lines = [Line(f"{work.recipe.dtype} copies", f"2 B x {n:,}", 2 * n)]
    if work.recipe.method.critic:  # which reads in the same pass
        m = shape.matrices + shape.biases - shape.vocabulary * shape.hidden
        lines.append(Line("critic's copies", f"2 B x {m:,}", 2 * m))
    return tuple(lines)


def _copies_to_sample(work: Work) -> tuple[Line, ...]:
    """The weights that a token is written with: rounded, or where two are put together, a copy."""
    if not work.fused:
        return _copies(work)
    shape = work.shape
    if work.rounds:
        n = shape.matrices + shape.biases
        return (Line("weights to sample", f"2 B x {n:,}, together", 2 * n),)
    maps = shape.linear_maps
    together = sum(a * b for name, (a, b) in maps.items() if name not in ("o_proj", "down_proj"))
    n = shape.layers * together + shape.biases
    return (Line("weights to sample", f"4 B x {n:,}, together", 4 * n),)


def decoding(work: Work, rows: int) -> tuple[Line, ...]:
    """What it takes to write `rows` completions at the same time."""
    recipe, shape, lengths = work.recipe, work.shape, work.lengths
    keys, values = cached_bytes(work)
    places = lengths.longest_prompt + work.written
    if not work.in_graphs:
        places = cache_places(lengths.longest_prompt, work.written)
    if work.fused:
        places = ceil(places / PLACES) * PLACES
    number = shape.cached_numbers
    cache = Line(
        "KV cache",
        f"{shape.layers} layers x {shape.kv_heads} heads x {shape.head_size} x ({keys} + {values})"
        f" B x {rows} rows x {places} places",
        number * (keys + values) * rows * places,
    )
    filtered = recipe.top_k is not None or recipe.top_p is not None
    size = LOGITS_FILTERED if filtered else LOGITS_SAMPLING
    logits = size * rows * shape.vocabulary
    words = f"{size} B x {rows} rows x {shape.vocabulary:,} words"
    return cache, Line("logits", words, logits)


def cached_bytes(work: Work) -> tuple[int, int]:
    """Bytes of one number in the cached keys and in the values."""
    return (2, 2) if work.rounds else (4, 4)


def cache_places(prompt: int, tokens: int) -> int:
    """Places that the cache's buffers end with where they grow (`with_room` of policy/decoding.py),
    if no row has ended before: a half more than there is, whenever they are full."""
    places = prompt + max(16, prompt // 2)
    while places < prompt + tokens - 1:  # the last token is never read
        places += max(16, places // 2)
    return places


def _training(work: Work) -> Iterator[Moment]:
    """The moments of an update that can be its worst."""
    shape, recipe, trained = work.shape, work.recipe, trained_parameters(work)
    words = shape.vocabulary * shape.hidden
    in_pieces = recipe.method.trains_policy and logits_at_once(work) < all_logits(work)
    copies = () if recipe.gradient_checkpointing else _copies(work, words * in_pieces)
    gradients = Line("gradients", f"4 B x {trained:,}", 4 * trained)
    so_far = (gradients,) if work.in_pieces else ()  # of the pieces before this one
    kept = activations(work)
    logits = (_training_logits(work),) if recipe.method.trains_policy else ()
    if in_pieces and not recipe.lora:
        logits = (*logits, _output_gradients(work))
    yield Moment("training: after the forward pass", (*copies, *so_far, kept, *logits))
    n = shape.matrices + shape.biases - words * in_pieces
    # Autograd comes to copies that an earlier piece had made after everything else.
    late = not recipe.lora and copies and work.in_pieces
    rounded = (Line("rounded gradients", f"2 B x {n:,}", 2 * n),) if late else ()
    if recipe.gradient_checkpointing:
        # As the inputs go, layer by layer, the gradients come.
        coming = rounded if late else (gradients,) * (not so_far)
        changing = max((kept,), coming, key=total)
        layer = (*copies, *so_far, *changing, _recomputed(work))
        yield Moment("training: a layer computed again", layer)
    if not recipe.lora:
        embedding = Line("embedding's gradient", f"2 x 4 B x {words:,}, not yet added", 8 * words)
        yield Moment(
            "training: end of the backward pass", (*copies, gradients, *rounded, embedding)
        )
    if recipe.method.critic:
        m = scalar_parameters(work)
        lines = [*copies, gradients, Line("critic's gradients", f"4 B x {m:,}", 4 * m), kept]
        if recipe.gradient_checkpointing:
            lines.append(_recomputed(work))
        yield Moment("training: the critic", tuple(lines))


def all_logits(work: Work) -> int:
    """Numbers in the logits of a piece of the batch."""
    return work.shape.vocabulary * work.piece * work.lengths.longest_completion


def logits_at_once(work: Work) -> int:
    """How many of these there are at the same time: those of whole rows, where one fits."""
    length, words = work.lengths.longest_completion, work.shape.vocabulary
    learned = 0 if work.recipe.lora else words * work.shape.hidden
    if all_logits(work) <= LOGITS_AT_ONCE + learned:
        return all_logits(work)
    positions = max(2, LOGITS_AT_ONCE // words)
    return words * min(positions, length * max(1, positions // (length + 1)))


def _training_logits(work: Work) -> Line:
    size, count, words = LOGITS_TRAINING, logits_at_once(work), work.shape.vocabulary
    if count < all_logits(work):
        told = f"{size} B x {count // words:,} tokens at once x {words:,} words"
    else:
        rows, tokens = work.piece, work.lengths.longest_completion
        told = f"{size} B x {rows} rows x {tokens} tokens x {words:,} words"
    return Line("logits", told, size * count)


def _output_gradients(work: Work) -> Line:
    """The output layer's gradient, and a piece's own; under bfloat16 it is rounded, as its weights
    are."""
    words = work.shape.vocabulary * work.shape.hidden
    size = 12 if work.rounds else 8
    told = f"{size} B x {words:,}, so far and of some tokens"
    return Line("output layer", told, size * words)


# The same of the norms of queries and keys, in bytes for each number that they normalize.
QK_NORM = {(True, False): 6, (False, False): 8, (True, True): 4, (False, True): 4}


def kept_by_a_layer(work: Work) -> int:
    """Bytes that one layer keeps of one token for the backward pass."""
    shape, recipe = work.shape, work.recipe
    h, q, i, s, r = KEPT[work.rounds, bool(recipe.lora)]
    width = work.lengths.longest_prompt + work.lengths.longest_completion
    wide = h * shape.hidden + q * shape.heads * shape.head_size + i * shape.intermediate
    if shape.qk_norm:
        heads = shape.heads + shape.kv_heads
        wide += heads * (QK_NORM[work.rounds, bool(recipe.lora)] * shape.head_size + 4)
    return wide + 8 + 4 * shape.heads + s * width + r * (_rank(work) if recipe.lora else 0)


def activations(work: Work) -> Line:
    """What the backward pass of one piece needs from its forward pass."""
    layers, tokens, one = work.shape.layers, work.piece_tokens, kept_by_a_layer(work)
    if work.recipe.gradient_checkpointing:
        size, width = weight_bytes(work), work.shape.hidden
        told = f"{tokens:,} tokens x {layers} layers x {size} B x {width}"
        return Line("layers' inputs", told, tokens * layers * size * width)
    amount, arithmetic = layers * one * tokens, f"{layers} layers x {tokens:,} tokens x {one:,} B"
    if work.piece_prompts < work.piece:
        # Keys and values of a shared prompt, repeated for every row and query head that reads it.
        size = 2 if work.rounds else 4
        heads = work.shape.heads * work.shape.head_size
        again = layers * 2 * size * heads * work.piece * work.lengths.longest_prompt
        amount, arithmetic = amount + again, f"{arithmetic} + {again / 1e9:.2f} GB of shared keys"
    return Line("activations", arithmetic, amount)


def _recomputed(work: Work) -> Line:
    """What one layer takes in the backward pass when its activations are computed again."""
    more, one = RECOMPUTED[bool(work.recipe.lora)], kept_by_a_layer(work)
    tokens = work.piece_tokens
    return Line("layer in work", f"{more} x {tokens:,} tokens x {one:,} B", more * tokens * one)


def evaluation_rows(work: Work, free: float, at_most: int = 512) -> int:
    """Completions that evaluation writes at once: 512, halved until they fit into `free` bytes."""
    rows = at_most
    while rows > 1 and total((*_copies_to_sample(work), *decoding(work, rows))) > free:
        rows = ceil(rows // 2)
    return rows


def _rank(work: Work) -> int:
    return work.recipe.lora["rank"]
