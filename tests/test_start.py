"""What every program that reads a notebook imports is quick to import."""

import subprocess
import sys

CODE = 'import nbformat, sys; print({"lark", "rfc3987_syntax"} & set(sys.modules))'


def test_reading_notebooks_builds_no_grammar_of_addresses():
    command = [sys.executable, "-I", "-c", CODE]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
