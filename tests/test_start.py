"""Starting is fast: what reading notebooks imports in vain waits until it is called."""

import subprocess
import sys

CODE = """
import {first}nbformat, sys
loaded = "lark" in sys.modules
from jsonschema import FormatChecker
seen = [FormatChecker().conforms(text, "iri") for text in ("http://\\u00e4.example/", "no address")]
print(loaded, *seen)
"""


def run(first: str) -> str:
    command = [sys.executable, "-I", "-c", CODE.format(first=first)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_grammar_of_addresses_is_built_when_an_address_is_checked():
    assert run("rlcourse, ") == "False True False"
