"""What a chat template makes of a question: nothing of it is lost, or the run does not begin."""

import pytest
from small_models import small_tokenizer
from typer.testing import CliRunner

from rlcourse.cli import app
from rlcourse.errors import UserError
from rlcourse.policy import Policy
from rlcourse.policy.loading import question_as_read
from rlcourse.policy.prompts import format_prompt, opened_by

SAID = "{{m['role']}}: {{m['content']}}\n"
EVERY = "{% for m in messages %}" + SAID + "{% endfor %}assistant:"
REFUSES = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no') }}{% endif %}"
TEMPLATES = {
    "all roles": EVERY,
    "no system": "{% for m in messages %}{% if m['role'] == 'user' %}" + SAID + "{% endif %}"
    "{% endfor %}assistant:",
    "refuses system": REFUSES + EVERY,
    "content parts": "{% for m in messages %}{% for c in m['content'] %}"
    "{% if c['type'] == 'text' %}{{m['role']}}: {{c['text']}}\n{% endif %}"
    "{% endfor %}{% endfor %}assistant:",
    "space before BOS": " {{ bos_token }}" + EVERY,
    "trims": EVERY.replace("m['content']", "m['content'] | trim"),
}


def tokenizer_with(template: str):
    tokenizer = small_tokenizer()
    tokenizer.chat_template = template
    return tokenizer


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("system", [None, "Be brief. "])
def test_question_and_instruction_are_read(name, system):
    tokenizer = tokenizer_with(TEMPLATES[name])
    text = format_prompt(tokenizer, " How many?", system)
    assert "How many?" in text and (system or "").strip() in text and text.endswith("assistant:")
    assert text.count("How many?") == 1
    if name == "space before BOS":
        assert text.startswith(tokenizer.bos_token)


@pytest.mark.parametrize(
    "template, told",
    [
        ("{% for m in messages %}{{m['role']}}{% endfor %}", "leaves the question out"),
        ("{{ effort.upper() }}" + EVERY, r"'effort' is undefined.*template\.effort=VALUE"),
        ("{% for m in %}", "chat template fails"),
    ],
)
def test_a_template_that_loses_the_question_or_fails_is_refused_in_one_sentence(template, told):
    with pytest.raises(UserError, match=told):
        format_prompt(tokenizer_with(template), "How many?", "Be brief.")


def test_a_template_gets_its_arguments_and_may_begin_the_thought():
    template = EVERY + "{% if thinking %}<think>\n{% endif %}"
    for thinking, begun in ((True, "<think>"), (False, "")):
        prompt = format_prompt(tokenizer_with(template), "Why?", None, {"thinking": thinking})
        assert opened_by(prompt) == begun
    needy = tokenizer_with("{{ effort.upper() }}" + EVERY)
    assert format_prompt(needy, "Why?", None, {"effort": "low"}).startswith("LOW")


def test_a_plan_ends_with_a_question_as_the_policy_reads_it():
    told = CliRunner().invoke(app, ["plan", "grpo", "policy=tiny", "system=Be brief."])
    prompt = format_prompt(Policy.load("tiny").tokenizer, "QUESTION", "Be brief.")
    assert told.output.endswith(f"as the policy reads it:\n  {prompt}\n")
    elsewhere = question_as_read("no/such-model", None, {})
    assert elsewhere.startswith("How a question is put to the policy is not known here. ")
