"""`rlcourse evaluate` and `rlcourse compare` as their users call them."""

import json
import sys
from pathlib import Path

import pytest

from rlcourse.cli import main
from rlcourse.evaluation import read_evaluation
from rlcourse.tasks import format_reward

QUICK = ["--problems", "6", "--samples", "2", "--max-tokens", "24"]


@pytest.fixture
def rlcourse(monkeypatch, capsys, tmp_path):
    """Runs a command in an empty directory: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["rlcourse", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        return code, *capsys.readouterr()

    return run


def test_evaluating_twice_and_comparing(rlcourse):
    code, table, _ = rlcourse("evaluate", *QUICK, "--out", "one")
    assert code == 0
    assert table.startswith("6 problems, 2 samples each at temperature 1;")
    assert "majority vote of k" in table and "accuracy, read leniently" in table
    assert table == Path("one/table.txt").read_text()
    code, _, _ = rlcourse("evaluate", *QUICK, "--out", "two", "--temperature", "0.5")
    assert code == 0
    evaluation = read_evaluation("two")
    assert evaluation.temperature == 0.5 and list(evaluation.pass_at) == [1, 2]
    code, text, _ = rlcourse("compare", "one", "two")
    assert code == 0
    assert "temperature: 1.0 and 0.5" in text and "exact sign test" in text


def test_every_option_reaches_the_evaluation(rlcourse):
    code, _, _ = rlcourse(
        *("evaluate", *QUICK, "--seed", 3, "--batch", 4),
        *("--system", "Think.", "--extract", "tagged", "--dtype", "float64", "--out", "out"),
    )
    assert code == 0
    settings = json.loads(Path("out/settings.json").read_text())
    expected = {
        **{"policy": "tiny", "task": "word_problems", "data": None, "dtype": "float64"},
        **{"samples": 2, "temperature": 1.0, "max_tokens": 24},
        **{"seed": 3, "batch": 4, "system": "Think.", "extract": "extract_tagged_answer"},
        **{"format_reward": "format_reward"},
    }
    assert expected.items() <= settings.items()
    assert settings["problems"].startswith("6 (")
    for transcript in read_evaluation("out").transcripts:
        for one in (transcript.greedy, *transcript.samples):
            assert one.format_reward == pytest.approx(float(format_reward([one.text])[0]))


def test_a_run_alone_is_compared_with_itself_before_training(rlcourse, policy, task, recipe):
    from rlcourse.training import train

    run = train(recipe("sft", steps=30, lr=1e-2), "run", policy=policy, task=task, progress=False)
    code, text, _ = rlcourse("compare", "run")
    assert code == 0
    assert "A  run/evaluation_before.json" in text and "B  run\n" in text
    assert run.after.accuracy.value > run.before.accuracy.value
    train(recipe("sft", steps=3, lr=0.5), "other", policy=policy, task=task, progress=False)
    code, text, _ = rlcourse("compare", "run", "other")
    assert code == 0 and "  lr: 0.01 and 0.5\n" in text and "  steps: 30 and 3\n" in text


@pytest.mark.parametrize(
    "arguments, code, message",
    [
        (["evaluate", "--resume"], 1, "--resume needs --out"),
        (
            ["evaluate", "--extract", "guess"],
            1,
            "one of marked, tagged, boxed, strict",
        ),
        (["evaluate", "--problems", "0"], 2, "--problems"),
        (["evaluate", "--dtype", "int8"], 1, "Unknown dtype 'int8'"),
        (["evaluate", "--policy", "./nowhere"], 1, "There is no model directory nowhere"),
        (["evaluate", *QUICK, "--max-tokens", "100000"], 1, "this model reads at most"),
        (["compare", "nowhere", "nothing"], 1, "nowhere holds no evaluation"),
        (["compare", "nowhere"], 1, "nowhere holds no evaluation before training"),
    ],
)
def test_wrong_calls_end_in_one_sentence(rlcourse, arguments, code, message):
    found, out, error = rlcourse(*arguments)
    assert found == code and message in error and not out
    assert "Traceback" not in error
    assert not list(Path().iterdir())
