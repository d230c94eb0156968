"""A policy loads, encodes, scores, copies and saves, or says clearly why it cannot."""

import pytest
import torch
from small_models import (
    ARCHITECTURES,
    BOS,
    EOS,
    PAD,
    V,
    left_padded_prompts,
    small_model,
    small_tokenizer,
)

from rlcourse.algorithms import token_entropy
from rlcourse.errors import UserError
from rlcourse.policy import Policy, Rollouts, sample_completions
from rlcourse.policy.loading import require_kernels

CHAT = (
    "{{ bos_token }}{% for m in messages %}{{ m['role'] }} : {{ m['content'] }} {% endfor %}"
    "{% if add_generation_prompt %}assistant :{% endif %}"
)


@pytest.fixture
def policy():
    return Policy(small_model("llama"), small_tokenizer())


@pytest.fixture
def rollouts(policy):
    return policy.sample(["w3 w4 w5", "w9"], group_size=3, max_tokens=12)


def row_by_row_logprobs(model, rollouts):
    """The slow truth: each completion alone after its own prompt, no padding, no cache."""
    expected = torch.zeros_like(rollouts.old_logprobs)
    for row in range(len(rollouts)):
        prompt = rollouts.prompt_tokens[row, rollouts.prompt_mask[row]]
        answer = rollouts.tokens[row, rollouts.mask[row]]
        logits = model(torch.cat([prompt, answer])[None]).logits[0]
        logprobs = (logits / rollouts.temperature).log_softmax(-1)
        for t, token in enumerate(answer):
            expected[row, t] = logprobs[len(prompt) - 1 + t, token]
    return expected


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_logprobs_equal_scoring_each_row_alone(architecture):
    model = small_model(architecture, dtype=torch.float64)

    def draw(eos_ids):
        settings = {"group_size": 3, "max_tokens": 12, "temperature": 0.8, "eos_ids": eos_ids}
        generator = torch.Generator().manual_seed(0)
        return sample_completions(model, *left_padded_prompts(), generator=generator, **settings)

    # A token that the same draws meet again: some row ends early.
    rollouts = draw((EOS, int(draw(()).tokens[0, 2])))
    assert not rollouts.mask.all()
    logprobs = Policy(model, small_tokenizer()).logprobs(rollouts)
    expected = row_by_row_logprobs(model, rollouts)
    torch.testing.assert_close(logprobs, expected, rtol=0, atol=1e-12)
    assert (logprobs[~rollouts.mask] == 0).all()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_gradient_equals_that_of_scoring_each_row_alone(architecture):
    model = small_model(architecture, dtype=torch.float64)
    rollouts = sample_completions(
        model, *left_padded_prompts(), max_tokens=8, generator=torch.Generator().manual_seed(0)
    )
    policy = Policy(model, small_tokenizer())
    weights = torch.linspace(-1, 1, rollouts.tokens.numel()).view_as(rollouts.tokens)
    parameters = list(policy.parameters())
    batched = torch.autograd.grad((policy.logprobs(rollouts) * weights).sum(), parameters)
    alone = torch.autograd.grad((row_by_row_logprobs(model, rollouts) * weights).sum(), parameters)
    for ours, expected in zip(batched, alone, strict=True):
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-10)


def test_prompt_logits_are_never_computed(policy, rollouts, monkeypatch):
    widths = []
    policy.model.lm_head.register_forward_hook(lambda m, i, out: widths.append(out.shape[1]))
    policy.logprobs(rollouts)
    assert widths == [rollouts.tokens.shape[1] + 1]


def test_entropy_is_that_of_the_sampling_distribution(policy):
    rollouts = policy.sample(["w3 w4"], group_size=4, max_tokens=6, temperature=0.7)
    logprobs, entropy = policy.logprobs_and_entropy(rollouts)
    assert torch.equal(logprobs, policy.logprobs(rollouts))
    tokens = torch.cat([rollouts.prompt_tokens, rollouts.tokens], 1)
    logits = policy.model(tokens).logits[:, rollouts.prompt_tokens.shape[1] - 1 : -1]
    expected = token_entropy(logits / 0.7).masked_fill(~rollouts.mask, 0)
    torch.testing.assert_close(entropy, expected)


def test_dropout_follows_the_mode_and_sampling_restores_it():
    model = small_model("gpt2", resid_pdrop=0.5, embd_pdrop=0.5, attn_pdrop=0.5)
    policy = Policy(model, small_tokenizer()).train()
    draws = [
        policy.sample(["w3 w4"], max_tokens=8, generator=torch.Generator().manual_seed(1)).tokens
        for _ in range(2)
    ]
    assert policy.model.training and torch.equal(*draws)
    rollouts = policy.sample(["w3 w4"], max_tokens=8)
    assert not torch.equal(policy.logprobs(rollouts), policy.logprobs(rollouts))
    policy.eval()
    assert torch.equal(policy.logprobs(rollouts), policy.logprobs(rollouts))
    torch.testing.assert_close(policy.logprobs(rollouts), rollouts.old_logprobs, rtol=0, atol=1e-5)


# Text and tokens


def test_prompts_are_left_padded(policy):
    tokens, mask = policy.encode_prompts(["w3 w4 w5", "w9"])
    assert tokens.tolist() == [[3, 4, 5], [PAD, PAD, 9]]
    assert mask.tolist() == [[True, True, True], [False, False, True]]


def add_bos(tokenizer, eos=False):
    """The tokenizer now opens every text with BOS, as Llama's does, and may close it with EOS."""
    from tokenizers.processors import TemplateProcessing

    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<bos> $A <eos>" if eos else "<bos> $A",
        special_tokens=[("<bos>", BOS), ("<eos>", EOS)],
    )
    return tokenizer


def test_one_bos_whether_the_template_or_the_tokenizer_writes_it():
    tokenizer = add_bos(small_tokenizer())
    tokenizer.chat_template = CHAT.replace("}}{% for", "}} {% for")
    policy = Policy(small_model("llama"), tokenizer)
    prompts = [policy.format_prompt("w7"), "w7"]
    assert prompts[0].startswith("<bos>")
    tokens, mask = policy.encode_prompts(prompts)
    for row in range(2):
        ids = tokens[row, mask[row]].tolist()
        assert ids[0] == BOS and ids.count(BOS) == 1


def test_a_tokenizer_that_closes_texts_does_not_close_the_prompt():
    policy = Policy(small_model("llama"), add_bos(small_tokenizer(), eos=True))
    assert policy.encode_prompts(["w7 w8"])[0].tolist() == [[BOS, 7, 8]]


def test_prompt_format_with_and_without_chat_template(policy):
    assert policy.format_prompt("How many?") == "Question: How many?\nAnswer:"
    plain = policy.format_prompt("How many?", system="Be brief.")
    assert plain == "Be brief.\n\nQuestion: How many?\nAnswer:"
    policy.tokenizer.chat_template = CHAT
    chat = policy.format_prompt("How many?", system="Be brief.")
    assert chat == "<bos>system : Be brief. user : How many? assistant :"


def test_decode_leaves_out_what_ends_and_what_pads(policy):
    policy.eos_ids = (EOS, 7)
    tokens = torch.tensor([[3, 4, EOS, PAD], [5, 7, PAD, PAD], [8, 9, 10, 11]])
    mask = torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 1, 1]]).bool()
    batch = Rollouts(tokens, mask, tokens, mask, torch.zeros(3, 4), group_size=1)
    assert policy.decode(batch) == ["w3 w4", "w5", "w8 w9 w10 w11"]


def test_demonstrations_end_with_eos_and_can_be_scored(policy):
    batch = policy.demonstrations(["w3 w4", "w5"], ["w6", "w7 w8"])
    assert batch.tokens.tolist() == [[6, EOS, PAD], [7, 8, EOS]]
    assert batch.mask.tolist() == [[True, True, False], [True, True, True]]
    assert policy.logprobs(batch).shape == (2, 3)
    assert policy.decode(batch) == ["w6", "w7 w8"]


# Copies


def test_saved_policy_loads_with_the_same_logprobs(policy, rollouts, tmp_path):
    policy.save(tmp_path / "deep" / "model")
    policy.save(tmp_path / "deep" / "model")  # replaces the first
    loaded = Policy.load(tmp_path / "deep" / "model", device="cpu")
    assert torch.equal(loaded.logprobs(rollouts), policy.logprobs(rollouts))
    assert loaded.format_prompt("x") == policy.format_prompt("x")
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["model"]


def test_half_precision_on_disk_is_float32_in_memory(policy, tmp_path):
    policy.model.half()
    policy.save(tmp_path / "half")
    assert {p.dtype for p in Policy.load(tmp_path / "half").parameters()} == {torch.float32}
    asked = Policy.load(str(tmp_path / "half"), dtype="bfloat16", device="cpu")
    assert {p.dtype for p in asked.parameters()} == {torch.bfloat16}
    rollouts = asked.sample(["w3 w4"], group_size=4, max_tokens=6)
    assert rollouts.old_logprobs.dtype == asked.logprobs(rollouts).dtype == torch.float32


def test_interrupted_save_leaves_the_earlier_model(policy, rollouts, tmp_path, monkeypatch):
    policy.save(tmp_path / "model")
    before = policy.logprobs(rollouts)

    def full_disk(directory):
        (directory / "tokenizer.json").write_text("half of")
        raise OSError(28, "No space left on device")

    with torch.no_grad():
        policy.model.lm_head.weight.add_(1)
    monkeypatch.setattr(policy.tokenizer, "save_pretrained", full_disk)
    with pytest.raises(UserError, match=r"No space left on device.*free some space"):
        policy.save(tmp_path / "model")
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    assert torch.equal(Policy.load(tmp_path / "model").logprobs(rollouts), before)


def test_save_never_replaces_other_peoples_files(policy, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.txt").write_text("words")
    with pytest.raises(UserError, match="choose an empty directory"):
        policy.save(tmp_path / "thesis")
    assert (tmp_path / "thesis" / "chapter1.txt").read_text() == "words"


def test_frozen_clone_is_a_reference_that_training_does_not_move(policy, rollouts):
    reference = policy.train().clone(frozen=True)
    before = reference.logprobs(rollouts)
    assert not before.requires_grad and not reference.model.training
    with torch.no_grad():
        next(policy.parameters()).add_(1)
    assert torch.equal(reference.logprobs(rollouts), before)
    assert not torch.equal(policy.logprobs(rollouts), before)
    assert all(p.requires_grad for p in policy.clone().parameters())


# What a user can mend


@pytest.mark.parametrize(
    "name, message",
    [
        ("/no/such/directory", "There is no model directory /no/such/directory: check the path."),
        ("a name/that is none", "There is no model 'a name/that is none' on the Hugging Face hub"),
    ],
)
def test_a_name_that_cannot_exist(name, message):
    with pytest.raises(UserError) as caught:
        Policy.load(name)
    assert str(caught.value).startswith(message)


def truncate_weights(directory):
    weights = directory / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])


def drop_a_weight(directory):
    from safetensors.torch import load_file, save_file

    weights = load_file(directory / "model.safetensors")
    weights.pop("model.norm.weight")
    save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})


def another_vocabulary(directory):
    config = directory / "config.json"
    config.write_text(config.read_text().replace(f'"vocab_size": {V}', '"vocab_size": 77'))


@pytest.mark.parametrize(
    "damage",
    [
        truncate_weights,
        drop_a_weight,
        another_vocabulary,
        lambda d: (d / "config.json").unlink(),
        lambda d: (d / "config.json").write_text("{ not json"),
        lambda d: (d / "config.json").write_text('{"model_type": "no_such_type"}'),
        lambda d: (d / "model.safetensors").unlink(),
        lambda d: (d / "tokenizer.json").write_text("{"),
        lambda d: [(d / f).unlink() for f in ("tokenizer.json", "tokenizer_config.json")],
    ],
)
def test_a_broken_directory_is_explained(policy, tmp_path, damage):
    policy.save(tmp_path / "model")
    damage(tmp_path / "model")
    with pytest.raises(UserError) as caught:
        Policy.load(tmp_path / "model")
    message = str(caught.value)
    assert str(tmp_path / "model") in message
    assert message.endswith("download or save it again.") and "\n" not in message


def test_eos_pads_where_there_is_no_padding_token():
    policy = Policy(small_model("llama"), small_tokenizer(eos_token="<eos>"))
    assert policy.pad_id == EOS
    rollouts = policy.sample(["w3 w4", "w5"], group_size=4, max_tokens=10)
    torch.testing.assert_close(policy.logprobs(rollouts), rollouts.old_logprobs, rtol=0, atol=1e-4)


def test_neither_padding_nor_end_token_is_explained():
    model = small_model("llama")
    model.generation_config.eos_token_id = None
    with pytest.raises(UserError, match=r"set `tokenizer.pad_token`"):
        Policy(model, small_tokenizer(unk_token="w3"))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"device": "cuda:9"}, "device 'cuda:9' cannot be used"),
        ({"device": "toaster"}, "device 'toaster' cannot be used"),
        ({"dtype": "float12"}, "Unknown dtype 'float12': use"),
        ({"dtype": torch.int8}, "Unknown dtype torch.int8: use"),
    ],
)
def test_impossible_device_or_dtype(options, message):
    with pytest.raises(UserError, match=message):
        Policy.load("tiny", **options)


def test_prompts_beyond_the_context_or_empty_are_explained(policy):
    with pytest.raises(UserError, match=r"3 tokens and max_tokens is 126, but .* at most 128"):
        policy.sample(["w3 w4 w5"], max_tokens=126)
    with pytest.raises(UserError, match="no tokens"):
        policy.sample([""])
    with pytest.raises(UserError, match="at least one prompt"):
        policy.sample([])


@pytest.mark.parametrize("device", [None, "cuda"])
def test_a_gpu_without_kernels_is_refused(device, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "Tesla P100")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (6, 0))
    built_for = ["sm_75", "sm_80", "sm_100", "compute_120"]
    monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: built_for)
    with pytest.raises(UserError, match=r"no kernels for Tesla P100, .* 6\.0: they begin at 7\.5"):
        Policy.load("tiny", device=device)
    built_for.append("sm_60")
    require_kernels(torch.device("cuda"))
    built_for.clear()  # of a build that does not say, such as ROCm's
    require_kernels(torch.device("cuda"))


def test_cudnn_which_prepares_for_every_length_does_not_attend(policy):
    torch.backends.cuda.enable_cudnn_sdp(True)
    Policy(policy.model, policy.tokenizer)
    assert not torch.backends.cuda.cudnn_sdp_enabled()
