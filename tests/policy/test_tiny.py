"""The embedded model: what its tokenizer promises, and that it is worth training."""

from itertools import islice

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from rlcourse.policy import build_tiny
from rlcourse.policy.build_tiny import TINY
from rlcourse.tasks import word_problems


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(TINY)


@pytest.fixture(scope="module")
def model():
    return AutoModelForCausalLM.from_pretrained(TINY, dtype=torch.float32).eval()


def chat(tokenizer, question, **options):
    options = {"tokenize": False, "add_generation_prompt": True, **options}
    return tokenizer.apply_chat_template([{"role": "user", "content": question}], **options)


def test_folder_stays_small():
    assert sum(path.stat().st_size for path in TINY.iterdir()) < 2_000_000


def test_plain_transformers_loads_it_in_half_precision():
    model = AutoModelForCausalLM.from_pretrained(TINY, dtype="auto")
    assert model.dtype == torch.float16
    assert model.num_parameters() < 300_000


@pytest.mark.parametrize("level", word_problems.LEVELS)
def test_every_text_of_the_task_survives_encoding_and_decoding(tokenizer, level):
    problems = [
        *word_problems.problems(400, 0, level),
        *word_problems.demonstrations(200, 0, level),
    ]
    for problem in problems:
        for text in (problem.question, problem.answer):
            ids = tokenizer(text)["input_ids"]
            assert tokenizer.unk_token_id not in ids
            assert tokenizer.decode(ids) == text


def test_numbers_are_split_into_digits(tokenizer):
    assert tokenizer.tokenize("12 * 345 = 4140\n#### 4140") == [
        *("1", "2", " * ", "3", "4", "5", " = ", "4", "1", "4", "0", "\n", "#### ", *"4140")
    ]


def test_special_tokens_are_distinct_and_agree_with_the_model(tokenizer, model):
    ids = [tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id]
    assert len({*ids, tokenizer.unk_token_id}) == 4
    config = model.config
    assert [config.pad_token_id, config.bos_token_id, config.eos_token_id] == ids
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id
    assert len(tokenizer) == config.vocab_size


@pytest.mark.parametrize("add_special_tokens", [True, False])
def test_a_chat_prompt_has_one_bos_however_it_is_encoded(tokenizer, add_special_tokens):
    prompt = chat(tokenizer, "Tom has 3 bags.")
    ids = tokenizer(prompt, add_special_tokens=add_special_tokens)["input_ids"]
    assert ids.count(tokenizer.bos_token_id) == 1
    assert ids == chat(tokenizer, "Tom has 3 bags.", tokenize=True, return_dict=False)


def test_chat_template_ends_an_answer_with_eos_and_marks_only_it_for_the_loss(tokenizer):
    messages = [
        {"role": "system", "content": "The answer is 1."},
        {"role": "user", "content": "There are 5 apples."},
        {"role": "assistant", "content": "#### 14"},
    ]
    encoded = tokenizer.apply_chat_template(
        messages, tokenize=True, return_dict=True, return_assistant_tokens_mask=True
    )
    ids, mask = encoded["input_ids"], encoded["assistant_masks"]
    assert tokenizer.decode(ids) == (
        "<s><|system|>The answer is 1.<|user|>There are 5 apples.<|assistant|>#### 14</s>"
    )
    assert [i for i, m in zip(ids, mask, strict=True) if m] == (
        tokenizer("#### 14")["input_ids"] + [tokenizer.eos_token_id]
    )


def test_the_script_rebuilds_the_same_tokenizer(tokenizer, tmp_path):
    build_tiny.build_tokenizer().save_pretrained(tmp_path)
    for name in ("tokenizer.json", "chat_template.jinja"):
        assert (tmp_path / name).read_text() == (TINY / name).read_text()


def test_the_base_learns_from_training_problems_only(tokenizer):
    corpus = build_tiny.Corpus(tokenizer, seed=0)
    for stream in corpus.streams.values():
        for problem in islice(stream, 500):
            assert not word_problems.is_held_out(problem.template, problem.numbers)
