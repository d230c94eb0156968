"""A plan says of memory what is really allocated, of time what can be checked by hand."""

import weakref
from dataclasses import replace
from functools import partial

import pytest
import torch
from llamas import byte_tokenizer, random_model
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from rlcourse.errors import UserError
from rlcourse.planning import memory
from rlcourse.planning.memory import decoding, memory_of, total
from rlcourse.planning.shapes import KNOWN, ModelShape, model_shape
from rlcourse.planning.work import Lengths, work_of
from rlcourse.policy import Policy, large_vocabulary
from rlcourse.policy.lora import add_adapters
from rlcourse.policy.rollouts import Rollouts
from rlcourse.policy.static_decoding import StaticDecoder
from rlcourse.training import Recipe
from rlcourse.training.learner import reference_for
from rlcourse.training.networks.forward import shared_prompt_logprobs
from rlcourse.training.networks.gradient_checkpointing import enable_gradient_checkpointing
from rlcourse.training.networks.micro_batches import MicroBatches
from rlcourse.training.networks.optimizer import adamw, autocast
from rlcourse.training.networks.value_head import value_head

LORA = {"rank": 4, "alpha": 8}
KINDS = [("float32", False), ("bfloat16", False), ("float32", True), ("bfloat16", True)]


def small_policy(dtype="float32", lora=False, architecture="llama", **sizes):
    """A policy as a run of that recipe has it: what adapters freeze may be rounded."""
    frozen = torch.bfloat16 if lora and dtype == "bfloat16" else torch.float32
    policy = Policy(random_model(architecture, dtype=frozen, **sizes), byte_tokenizer())
    if lora:
        pytest.importorskip("peft")
        add_adapters(policy, **LORA)
    return policy


def small_work(policy, batch, piece=None, **settings):
    """The work of one step of a small policy on `batch`."""
    rows, groups = len(batch), len(batch) // batch.group_size
    size = {
        "prompts_per_step": groups,
        "group_size": batch.group_size,
        "max_tokens": batch.mask.shape[1],
    }
    work = work_of(Recipe.of({"policy": "tiny", "micro_batch": piece} | size | settings))
    shape = ModelShape(policy.model.config)
    width, length = batch.prompt_mask.shape[1], batch.mask.shape[1]
    assert work.rows == rows
    return replace(work, shape=shape, lengths=Lengths(width, width, length, length))


def random_batch(groups=2, group_size=4, width=9, length=14, vocabulary=200):
    """Rollouts of random tokens; one prompt is padded, as in nearly every real batch."""
    draw = partial(torch.randint, 3, vocabulary, generator=torch.Generator().manual_seed(0))
    rows = groups * group_size
    prompts, mask = draw((groups, width)), torch.ones(groups, width, dtype=torch.bool)
    mask[0, 0] = False
    return Rollouts(
        prompts.repeat_interleave(group_size, 0),
        mask.repeat_interleave(group_size, 0),
        draw((rows, length)),
        torch.ones(rows, length, dtype=torch.bool),
        torch.zeros(rows, length),
        group_size=group_size,
    )


def lines_of(work):
    memory = memory_of(work)
    return [*memory.always, *(line for lines in memory.moments.values() for line in lines)]


def amount(lines, name):
    (found,) = {line.amount for line in lines if line.name == name}
    return found


def bytes_of(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


# shapes


# As their makers give them.
PARAMETERS = {
    "HuggingFaceTB/SmolLM2-135M": 134_515_008,
    "HuggingFaceTB/SmolLM2-360M": 361_821_120,
    "HuggingFaceTB/SmolLM2-1.7B": 1_711_376_384,
    "Qwen/Qwen2.5-0.5B": 494_032_768,
    "Qwen/Qwen2.5-1.5B": 1_543_714_304,
}


def test_known_models_have_the_parameters_that_their_shape_says():
    assert {name: model_shape(f"{name}-Instruct").parameters for name in KNOWN} == PARAMETERS


def test_models_that_cannot_be_planned_are_refused(tmp_path):
    random_model("gpt2").config.save_pretrained(tmp_path)
    with pytest.raises(UserError, match="is a gpt2 model"):
        model_shape(str(tmp_path))
    with pytest.raises(UserError, match="no model directory"):
        model_shape("./nowhere")


# memory, line by line


@pytest.mark.parametrize("dtype, lora", KINDS)
@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_weights_gradients_and_optimizer_are_exact(dtype, lora, architecture):
    policy, batch = small_policy(dtype, lora, architecture), random_batch()
    settings = {"lora": LORA} if lora else {}
    work = small_work(policy, batch, 4, dtype=dtype, beta=0.0 if lora else 0.1, **settings)
    lines = lines_of(work)
    optimizer = adamw(work.recipe, policy)
    with autocast("cpu", dtype):
        policy.logprobs(batch).sum().backward()
    gradients = [p.grad for p in policy.parameters() if p.grad is not None]
    optimizer.step()
    trained = [p for p in policy.parameters() if p.requires_grad]
    frozen = [p for p in policy.parameters() if not p.requires_grad]
    assert work.trained == sum(p.numel() for p in trained)
    if lora:
        assert amount(lines, "weights") == bytes_of(frozen)
        assert amount(lines, "adapters") == bytes_of(trained)
    else:
        assert amount(lines, "weights") == bytes_of(trained)
        reference = reference_for(policy, work.recipe)
        assert amount(lines, "reference") == bytes_of(reference.parameters())
    averages = [s[k] for s in optimizer.state.values() for k in ("exp_avg", "exp_avg_sq")]
    assert amount(lines, "AdamW") == bytes_of(averages)
    assert amount(lines, "gradients") == bytes_of(gradients)


def test_a_critic_and_a_reward_model_are_a_body_with_a_head():
    policy, batch = small_policy(tie_word_embeddings=False), random_batch()
    work = small_work(policy, batch, algorithm="ppo")
    critic = value_head(policy)
    assert work.scalar == sum(p.numel() for p in critic.parameters())
    assert amount(lines_of(work), "critic") == 3 * bytes_of(critic.parameters())


@pytest.mark.parametrize("dtype, lora", KINDS)
def test_the_cache_is_exact(dtype, lora):
    policy, batch = small_policy(dtype, lora), random_batch(length=60)
    work = small_work(policy, batch, dtype=dtype, lora=LORA if lora else {})
    lines, eos = decoding(work, len(batch)), torch.tensor([], dtype=torch.long)
    decoder = StaticDecoder(policy.model, torch.Tensor.argmax, eos, 1.0)
    with torch.no_grad(), autocast("cpu", dtype), decoder as static:
        prompts, mask = batch.prompt_tokens[::4], batch.prompt_mask[::4]
        static._read_prompts(prompts, mask, batch.group_size, 60)
        buffers = [b for layer in static.layers for b in (layer.keys, layer.values)]
    assert amount(lines, "KV cache") == bytes_of(buffers)


class Alive(TorchDispatchMode):
    """Adds up the bytes of the tensors made inside that are alive, and keeps the peak."""

    def __init__(self, made_before):
        super().__init__()
        self.now = self.peak = 0
        self.storages = {}
        self.before = {tensor.untyped_storage()._cdata for tensor in made_before}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in tree_iter(result):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                key = storage._cdata
                if key not in self.before and key not in self.storages:
                    self.storages[key] = storage.nbytes()
                    self.now += storage.nbytes()
                    self.peak = max(self.peak, self.now)
                    weakref.finalize(storage, self.gone, key)
        return result

    def gone(self, key):
        self.now -= self.storages.pop(key)


PEAKS = [
    {"hidden_size": 96, "intermediate_size": 320, "num_attention_heads": 6, "vocab_size": 200},
    {"hidden_size": 48, "intermediate_size": 64, "num_attention_heads": 3, "vocab_size": 3000},
]


@pytest.mark.parametrize(
    "sizes, recomputing",  # a layer computed again counts only beside few logits
    [(PEAKS[0], False), (PEAKS[1], False), (PEAKS[1], True)],
)
@pytest.mark.parametrize("piece", [None, 3])
@pytest.mark.parametrize(
    "lora, positions",  # logits at once: all, of a row
    [(False, None), (True, None), (False, 30)],
)
def test_the_peak_of_an_update_is_what_the_lines_of_training_add_up_to(
    sizes, piece, recomputing, lora, positions, monkeypatch
):
    if positions is not None:
        at_once = positions * sizes["vocab_size"]
        monkeypatch.setattr(large_vocabulary, "AT_ONCE", at_once)
        monkeypatch.setattr(memory, "LOGITS_AT_ONCE", at_once)
    batch = random_batch(groups=3, width=12, length=24, vocabulary=sizes["vocab_size"])
    sizes = {"num_hidden_layers": 5, "num_key_value_heads": 3, "head_dim": 16} | sizes
    policy = small_policy("bfloat16", lora, **sizes)
    if recomputing:
        enable_gradient_checkpointing(policy.model)
    settings = {"gradient_checkpointing": recomputing, "lora": LORA if lora else {}}
    work = small_work(policy, batch, piece, dtype="bfloat16", **settings)
    learning = MicroBatches(policy, piece)
    read = partial(shared_prompt_logprobs, policy)
    precision = autocast("cpu", "bfloat16", keep_rounded=not recomputing)
    with Alive(policy.parameters()) as alive, precision:
        learning.backward(read, batch, lambda logprobs: (logprobs.sum(),))
    moments = memory_of(work).moments
    planned = max(total(lines) for name, lines in moments.items() if name != "sampling")
    # Of logits in pieces the plan knows less: 16 % and 19 % are the farthest apart.
    assert alive.peak == pytest.approx(planned, rel=0.12 if positions is None else 0.22)


def test_plans_and_policies_make_as_many_logits_at_once():
    assert memory.LOGITS_AT_ONCE == large_vocabulary.AT_ONCE
