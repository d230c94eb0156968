"""A question as the model reads it: in its chat template, and nothing of it lost.

Templates differ in what they take. Some have no branch for a system message and leave it out in
silence, some want a message's content as a list of parts, some need arguments of their own. What
comes out is therefore searched for the words that went in.
"""

import re
from collections.abc import Mapping

from jinja2 import TemplateError

from rlcourse.errors import UserError, first_line

THINK = "<think>"


def format_prompt(
    tokenizer, question: str, system: str | None = None, arguments: Mapping | None = None
) -> str:
    """The question, after a system message where there is one, as this model expects it.

    A template that leaves the system message out has it said by the user, before the question; one
    that shows no plain text gets lists of parts. `arguments` are handed to the template, such as
    ``{"enable_thinking": False}``. A tokenizer without a template gets plain text.

    Raises:
        UserError: the template fails, or leaves the question out in every form.
    """
    if not tokenizer.chat_template:
        return f"{system}\n\n" * bool(system) + f"Question: {question}\nAnswer:"
    said = f"{system}\n\n{question}" if system else question
    tried = [[("system", system), ("user", question)]] if system else []
    failure = None
    for messages in [*tried, [("user", said)]]:
        for as_parts in (False, True):
            try:
                text = _rendered(tokenizer, messages, as_parts, arguments or {})
            except (TemplateError, ValueError, TypeError) as error:
                failure = failure or error
                continue
            if all(words.strip() in text for _, words in messages):
                return text
    if failure is not None:
        missing = re.search(r"'(\w+)' is undefined", str(failure))
        needed = f"set template.{missing[1]}=VALUE" if missing else "correct that template"
        raise UserError(
            f"The model's chat template fails ({first_line(failure)}): {needed}, or choose another "
            "model."
        ) from failure
    raise UserError(
        "The model's chat template leaves the question out, so the model would never read it: "
        "choose another model, or correct its chat_template.jinja."
    )


def _rendered(tokenizer, messages, as_parts: bool, arguments: Mapping) -> str:
    shown = [
        {"role": role, "content": [{"type": "text", "text": words}] if as_parts else words}
        for role, words in messages
    ]
    text = tokenizer.apply_chat_template(
        shown, tokenize=False, add_generation_prompt=True, **arguments
    )
    bos = tokenizer.bos_token
    return text.lstrip() if bos and text.lstrip().startswith(bos) else text


def opened_by(prompt: str) -> str:
    """The ``<think>`` that a template writes at the end of a prompt, or "".

    The model goes on after it, so what judges the form of a completion reads it as its beginning.
    """
    return THINK if prompt.rstrip().endswith(THINK) else ""
