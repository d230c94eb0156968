"""What is kept of an evaluation: however it was interrupted, continuing gives the same result.

Two evaluations are equal when everything but the seconds is: each text, each number, each interval.
"""

import json
import os
import shutil
import signal
from dataclasses import replace

import pytest
import torch
from scripted import PROBLEMS, Scripted

from rlcourse.errors import UserError
from rlcourse.evaluation import evaluate_policy, evaluation_table, read_evaluation
from rlcourse.signals import Interrupted
from rlcourse.tasks.problem import Problem

SETTINGS = {"samples": 3, "max_tokens": 8, "seed": 4, "batch": 12}  # four problems a batch


def timeless(evaluation):
    return replace(evaluation, seconds=0)


@pytest.fixture
def finished(policy, task, tmp_path):
    out = tmp_path / "whole"
    return out, evaluate_policy(policy, task.evaluation, **SETTINGS, out=out)


def test_a_directory_gives_back_what_was_measured(finished):
    out, evaluation = finished
    assert sorted(p.name for p in out.iterdir() if p.name != ".partial-lock") == [
        *("completions.jsonl", "result.json", "settings.json", "table.txt")
    ]
    assert read_evaluation(out) == evaluation
    assert (out / "table.txt").read_text() == evaluation_table(evaluation) + "\n"
    lines = [json.loads(line) for line in (out / "completions.jsonl").read_text().splitlines()]
    assert [line["question"] for line in lines] == [str(n) for n in range(10)]
    assert lines[3]["samples"][2]["text"] == evaluation.transcripts[3].samples[2].text


def test_cut_anywhere_and_resumed_equals_never_cut(finished, policy, task, tmp_path):
    out, evaluation = finished
    size = (out / "completions.jsonl").stat().st_size
    for number, cut in enumerate([*range(0, size, size // 13), size - 1, size]):
        again = tmp_path / str(number)
        shutil.copytree(out, again)
        (again / "result.json").unlink()
        os.truncate(again / "completions.jsonl", cut)
        resumed = evaluate_policy(policy, task.evaluation, **SETTINGS, out=again, resume=True)
        assert timeless(resumed) == timeless(evaluation), cut
        assert timeless(read_evaluation(again)) == timeless(evaluation), cut


def test_a_signal_in_the_last_batch_does_not_spoil_the_evaluation(tmp_path):
    def says(question, i):
        if question == last and i is None:
            os.kill(os.getpid(), signal.SIGINT)
        return question

    last = "9"
    evaluate_policy(Scripted(says), PROBLEMS, samples=1, batch=1, out=tmp_path / "one")
    assert (tmp_path / "one" / "result.json").exists()
    last = "3"
    with pytest.raises(Interrupted, match="after 4 of 10 problems"):
        evaluate_policy(Scripted(says), PROBLEMS, samples=1, batch=1, out=tmp_path / "two")


# What is refused, and that nothing is lost by it


@pytest.mark.parametrize(
    "change, message",
    [
        ({"seed": 5}, "was started with seed=4, not 5"),
        ({"batch": 24}, "was started with batch=12, not 24"),
        ({"temperature": 0.7}, "was started with temperature=1.0, not 0.7"),
        ({"system": "Think."}, "was started with system=None, not 'Think.'"),
        ({"extract": int}, "was started with extract='extract_answer', not 'int'"),
        ({"problems": PROBLEMS[:9]}, r"was started with problems='10 \(\w+\)', not '9 \(\w+\)'"),
        ({"resume": False}, "already holds a finished evaluation: add --resume"),
    ],
)
def test_other_settings_are_refused(change, message, finished, policy, task):
    out, _ = finished
    before = {path: path.read_bytes() for path in out.iterdir()}
    problems = change.pop("problems", task.evaluation)
    options = {**SETTINGS, "out": out, "resume": True} | change
    with pytest.raises(UserError, match=message):
        evaluate_policy(policy, problems, **options)
    assert before == {path: path.read_bytes() for path in out.iterdir()}


def test_other_weights_under_the_same_name_are_refused(finished, policy, task):
    with torch.no_grad():
        next(policy.parameters()).mul_(1.001)
    with pytest.raises(UserError, match="was started with weights="):
        evaluate_policy(policy, task.evaluation, **SETTINGS, out=finished[0], resume=True)


def test_places_that_hold_something_else_are_refused(policy, task, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for out, message in ((tmp_path, "is not empty and holds no"), (tmp_path / "notes.txt", "file")):
        with pytest.raises(UserError, match=message):
            evaluate_policy(policy, task.evaluation, **SETTINGS, out=out)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_line_that_somebody_changed_is_named(finished, policy, task):
    out, _ = finished
    lines = (out / "completions.jsonl").read_text().splitlines(keepends=True)
    (out / "completions.jsonl").write_text("".join([*lines[:4], lines[6], *lines[5:]]))
    with pytest.raises(UserError, match=r"completions\.jsonl, line 5 has been changed"):
        evaluate_policy(policy, task.evaluation, **SETTINGS, out=out, resume=True)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"accuracy": 3}', "{"])
def test_a_broken_result_is_one_sentence(content, finished):
    (finished[0] / "result.json").write_text(content)
    with pytest.raises(UserError, match="cannot be read as an evaluation"):
        read_evaluation(finished[0])


def test_where_there_is_no_evaluation_it_says_what_to_name(tmp_path):
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(UserError, match="holds no evaluation: name a directory"):
            read_evaluation(path)


def test_any_text_that_a_model_writes_is_kept(tmp_path):
    texts = ["\n\r\x85\u2028", "\ud800 half", '"}\\u0041', "\x00", "é🙂"]
    policy = Scripted(lambda q, i: texts[int(q) % 5] + " ")
    problems = [*PROBLEMS[:4], Problem("4", "\udfff #### 4")]
    evaluation = evaluate_policy(policy, problems, samples=2, out=tmp_path / "out")
    assert read_evaluation(tmp_path / "out") == evaluation
    again = evaluate_policy(policy, problems, samples=2, out=tmp_path / "out", resume=True)
    assert again == evaluation
