"""The sampler draws what the model says, and its log-probs are those of a full scoring pass."""

import pytest
import torch
from simulated_graph import simulate
from small_models import ARCHITECTURES, EOS, PAD, left_padded_prompts, small_model, small_tokenizer

from rlcourse.algorithms import sample_tokens
from rlcourse.errors import UserError
from rlcourse.policy import Policy, decoding, sample_completions, sampler, static_decoding
from rlcourse.policy.sampler import MANY_WORDS, draw_quickly

MAX_TOKENS = 24


@pytest.fixture(params=["shared prompts", "copied prompts", "static cache", "repeated graph"])
def decoder(request, monkeypatch):
    """Run a test with each decoder; models that it does not suit take the second anyway."""
    if request.param == "copied prompts":
        monkeypatch.setattr(decoding, "CAN_SHARE_PROMPTS", ())
    if request.param in ("static cache", "repeated graph"):
        monkeypatch.setattr(sampler, "STATIC_CACHE_ON", ("cpu",))
    if request.param == "repeated graph":
        monkeypatch.setattr(static_decoding, "GRAPHS_ON", ("cpu",))
        simulate(monkeypatch)


def draw(model, prompts, seed=0, **options):
    settings = {"eos_ids": (EOS,), "pad_id": PAD, "max_tokens": MAX_TOKENS}
    settings["generator"] = torch.Generator().manual_seed(seed)
    return sample_completions(model, *prompts, **settings | options)


def generated(model, prompts, **options):
    """Greedy completions by the library's `generate`; in float64, where two tokens never tie."""
    tokens, mask = prompts
    output = model.generate(
        input_ids=tokens,
        attention_mask=mask.long(),
        max_new_tokens=MAX_TOKENS,
        do_sample=False,
        pad_token_id=PAD,
        **options,
    )
    return output[:, tokens.shape[1] :]


def eos_that_stops(model, prompts):
    """A token that greedy decoding reaches early in some rows and late or never in others."""
    tokens = generated(model, prompts, eos_token_id=None)
    return int(tokens[0, 4])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_greedy_equals_generate_when_rows_stop_at_eos(architecture, decoder):
    model = small_model(architecture, dtype=torch.float64)
    prompts = left_padded_prompts((3, 9, 1, 6, 2, 7, 5, 4))
    eos = eos_that_stops(model, prompts)
    expected = generated(model, prompts, eos_token_id=eos)
    ours = draw(model, prompts, group_size=2, temperature=0, eos_ids=(eos,))
    end = ours.tokens.shape[1]
    assert torch.equal(ours.tokens, expected[:, :end].repeat_interleave(2, 0))
    assert (expected[:, end:] == PAD).all()
    assert not ours.mask.all()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_logprobs_are_those_of_a_scoring_pass(architecture, decoder):
    model = small_model(architecture, dtype=torch.float64)
    settings = {"group_size": 8, "temperature": 0.7}
    free = draw(model, left_padded_prompts(), eos_ids=(), **settings)
    eos = (EOS, int(free.tokens[0, 2]))  # which the same draws meet again
    rollouts = draw(model, left_padded_prompts(), eos_ids=eos, **settings)
    scored = Policy(model, small_tokenizer()).logprobs(rollouts)
    assert (rollouts.old_logprobs - scored).abs().max() < 1e-12
    assert not rollouts.mask.all()  # some rows have ended early and left the batch
    assert (rollouts.old_logprobs[~rollouts.mask] == 0).all()


def test_mask_ends_with_the_first_eos_of_any_kind():
    rollouts = draw(small_model("llama", initializer_range=0.05), left_padded_prompts(), 1,
                    group_size=16, eos_ids=(EOS, 7))  # fmt: skip
    lengths = rollouts.mask.sum(1)
    for tokens, mask, length in zip(rollouts.tokens, rollouts.mask, lengths, strict=True):
        is_eos = (tokens == EOS) | (tokens == 7)
        assert mask[:length].all() and not mask[length:].any()
        assert not is_eos[: length - 1].any()
        assert is_eos[length - 1] or length == MAX_TOKENS
        assert (tokens[length:] == PAD).all()
    assert {EOS, 7} <= set(rollouts.tokens.flatten().tolist())
    assert rollouts.tokens.shape[1] == lengths.max()


def test_rows_do_not_depend_on_who_else_has_ended(decoder):
    """Alone, a row never leaves a batch; in company the batch shrinks around it."""

    def by_place(logits, **_):
        """The likeliest token at even steps, the third likeliest at odd ones."""
        by_place.step += 1
        return logits.topk(3).indices[:, by_place.step % 2 * 2]

    def drawn(prompts, **options):
        by_place.step = 1
        return draw(model, prompts, sample_tokens=by_place, **options)

    model = small_model("gpt2", dtype=torch.float64)
    tokens, mask = left_padded_prompts((3, 9, 1, 6, 2, 7, 5, 4, 8))
    free = drawn((tokens, mask), eos_ids=())
    eos = (int(free.tokens[0, 2]), int(free.tokens[1, 5]))
    together = drawn((tokens, mask), eos_ids=eos, group_size=3)
    assert len(set(together.mask.sum(1).tolist())) > 2
    for row in range(len(together)):
        real = mask[row // 3]
        prompt = tokens[row // 3, real][None], mask[row // 3, real][None]
        alone = drawn(prompt, eos_ids=eos)
        kept = together.mask[row]
        assert torch.equal(together.tokens[row, kept], alone.tokens[0])
        torch.testing.assert_close(
            together.old_logprobs[row, kept], alone.old_logprobs[0], rtol=0, atol=1e-12
        )


@pytest.mark.parametrize(
    "architecture, changes, group_size, shares",
    [
        ("llama", {}, 2, True),
        ("qwen2", {"attn_implementation": "eager"}, 2, True),
        ("gpt2", {}, 2, True),
        ("mistral", {}, 2, True),
        ("qwen3", {}, 2, True),
        ("llama", {}, 1, False),  # nothing to share
        ("llama", {"dtype": torch.bfloat16}, 2, False),
        ("mistral_sliding", {}, 2, False),
    ],
)
def test_prompts_are_shared_where_that_is_possible(architecture, changes, group_size, shares):
    model = small_model(architecture, **changes)
    decoder = decoding.group_decoder(model, left_padded_prompts()[1], group_size)
    assert isinstance(decoder, decoding.SharedPrompts) == shares


def test_every_draw_is_made_by_the_given_function():
    seen = []

    def recorded(logits, **options):
        seen.append((logits.shape, options))
        return sample_tokens(logits, **options)

    generator = torch.Generator()
    model, prompts = small_model("llama"), left_padded_prompts()
    draw(model, prompts, group_size=2, max_tokens=5, eos_ids=(), temperature=0.5, top_k=3,
         top_p=0.9, generator=generator, sample_tokens=recorded)  # fmt: skip
    options = {"temperature": 0.5, "top_k": 3, "top_p": 0.9, "generator": generator}
    assert seen == [((8, 40), options)] * 5


def test_a_draw_from_many_words_is_from_the_softmax():
    """By chi-square, at a temperature, with a last block that is not full."""
    n, words, generator = 40_000, MANY_WORDS + 9, torch.Generator().manual_seed(0)
    logits = torch.full((1, words), -torch.inf)
    kept = torch.tensor([0, 255, 256, 5000, words - 10, words - 1])  # at the edges of blocks, too
    logits[0, kept] = torch.tensor([0.0, 1.0, 0.5, -1.0, 0.3, 0.8])
    rows, options = logits.expand(n // 8, -1), {"generator": generator, "top_k": None}
    drawn = torch.cat([draw_quickly(rows, 0.7, **options) for _ in range(8)])
    found = (drawn[:, None] == kept).sum(0)
    expected = n * (logits / 0.7).softmax(-1)[0, kept]
    assert found.sum() == n and ((found - expected).square() / expected).sum() < 25  # 5 df: p 1e-4
    assert (draw_quickly(logits, 0.7, generator, top_k=1) == 255).all()
    assert draw_quickly(logits, 0.0).item() == 255


def test_wrong_shape_from_a_sampling_function_is_explained():
    with pytest.raises(UserError, match=r"shape \(4, 1\).*one token id per row"):
        draw(
            small_model("llama"),
            left_padded_prompts(),
            sample_tokens=lambda logits, **_: logits.argmax(-1, keepdim=True),
        )


def test_filtered_sampling_keeps_the_log_probs_of_the_full_softmax():
    model = small_model("llama", dtype=torch.float64)
    rollouts = draw(model, left_padded_prompts(), group_size=4, top_k=2)
    scored = Policy(model, small_tokenizer()).logprobs(rollouts)
    torch.testing.assert_close(rollouts.old_logprobs, scored, rtol=0, atol=1e-12)


def test_greedy_log_probs_are_at_temperature_one():
    model = small_model("llama", dtype=torch.float64)
    rollouts = draw(model, left_padded_prompts(), temperature=0)
    scored = Policy(model, small_tokenizer()).logprobs(rollouts)
    assert rollouts.temperature == 1
    torch.testing.assert_close(rollouts.old_logprobs, scored, rtol=0, atol=1e-12)


def test_unpadded_prompts_need_no_mask_and_long_completions_outgrow_the_buffers():
    model, prompts = small_model("llama", dtype=torch.float64), left_padded_prompts((5, 5))
    ours = draw(model, prompts, temperature=0, eos_ids=(), max_tokens=100)
    expected = model.generate(
        input_ids=prompts[0],
        attention_mask=prompts[1].long(),
        max_new_tokens=100,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=PAD,
    )
    assert torch.equal(ours.tokens, expected[:, 5:])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_logprobs_of_the_embedded_model_are_those_of_a_scoring_pass(decoder, dtype):
    policy = Policy.load("tiny", device="cpu").to(dtype)
    questions = ["Tom has 3 bags of 6 apples. How many apples?", "What is 12 + 9?", "4 * 5"]
    prompts = [policy.format_prompt(question) for question in questions]
    rollouts = policy.sample(
        prompts, group_size=16, max_tokens=40, generator=torch.Generator().manual_seed(0)
    )
    error = (policy.logprobs(rollouts) - rollouts.old_logprobs).abs()[rollouts.mask]
    assert len(error) > 100
    if dtype == torch.float64:
        assert error.max() < 1e-10
    else:  # only rounding, which was up to 3e-5 on the worst token
        assert error.median() < 1e-5
        assert error.max() < 1e-3
