"""GSM8K and other JSONL files: the real data, and every way a file can be wrong."""

import json
import os
from pathlib import Path

import datasets
import pytest

from rlcourse import hub
from rlcourse.errors import UserError
from rlcourse.tasks import correctness_reward, load_task

GSM8K = Path(
    os.environ.get(
        "RLCOURSE_GSM8K", Path(__file__).resolve().parents[2] / ".." / "shared" / "gsm8k"
    )
)
real_data = pytest.mark.skipif(
    not (GSM8K / "train.jsonl").exists(), reason="set RLCOURSE_GSM8K to a directory with GSM8K"
)
GOOD = {"question": "How many?", "answer": "It is 1 + 1 = 2.\n#### 2"}


def write(path, *rows):
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows) + "\n")
    return str(path)


def numbered(n):
    return [{**GOOD, "question": f"How many, case {i}?"} for i in range(n)]


@real_data
def test_all_8792_reference_answers_are_extracted_and_match_themselves():
    task = load_task("gsm8k", data=GSM8K)
    assert (len(task.train), len(task.evaluation)) == (7473, 1319)
    answers = [p.answer for p in (*task.train, *task.evaluation)]
    assert correctness_reward(answers, answers).sum() == 8792
    for problem in (*task.train, *task.evaluation):
        written = problem.answer.rpartition("####")[2].strip()
        assert float(problem.target) == float(written.replace(",", ""))


@real_data
def test_sizes_choose_a_subset_by_seed():
    first, again, other = (
        load_task("gsm8k", data=GSM8K, seed=s, train_size=50, evaluation_size=20) for s in (0, 0, 1)
    )
    assert (len(first.train), len(first.evaluation)) == (50, 20)
    assert first == again != other


def test_a_prefix_stands_before_every_question(tmp_path):
    for name in ("train", "test"):
        write(tmp_path / f"{name}.jsonl", GOOD)
    task = load_task("gsm8k", data=tmp_path, prefix="Question: ")
    for (problem,) in (task.train, task.evaluation):
        assert (problem.question, problem.answer) == ("Question: How many?", GOOD["answer"])


def test_hub_rows_become_problems(monkeypatch):
    def load_dataset(name, config):
        assert (name, config) == ("openai/gsm8k", "main")
        return {"train": numbered(3), "test": [GOOD]}

    monkeypatch.setattr(hub, "is_offline_mode", lambda: True)  # nobody is asked
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    task = load_task("gsm8k")
    assert len(task.train) == 3
    assert task.evaluation[0].target == "2"


def test_a_hub_that_does_not_answer_is_asked_once(monkeypatch, tmp_path):
    asked = []

    def get_hf_file_metadata(url, timeout):
        asked.append(url)
        raise OSError("Name or service not known")

    monkeypatch.setattr(hub, "cached", lambda *_, **__: None)
    monkeypatch.setattr(hub, "is_offline_mode", lambda: False)
    monkeypatch.setattr(hub, "get_hf_file_metadata", get_hf_file_metadata)
    monkeypatch.setattr(datasets, "load_dataset", lambda *_: pytest.fail("tried for a minute"))
    with pytest.raises(UserError, match=r"Name or service not known.*pass data=DIRECTORY"):
        load_task("gsm8k")
    assert len(asked) == 1 and asked[0].endswith("datasets/openai/gsm8k/resolve/main/README.md")


def test_a_single_file_is_split_without_overlap(tmp_path):
    path = write(tmp_path / "mine.jsonl", *numbered(40), *numbered(40))
    task = load_task(path)
    train, test = ({p.question for p in part} for part in (task.train, task.evaluation))
    assert task.name == "mine"
    assert (len(task.train), len(task.evaluation)) == (35, 5)
    assert not train & test


@pytest.mark.parametrize(
    ("answer", "target"),
    [(14, "14"), (" 14 ", "14"), (14.0, "14"), ("1e5", "100000"), (1e16, "1" + "0" * 16),
     (0.00001, "0.00001"), ("half\n#### 1/2", "0.5"), ("x\n#### $1,234.50.", "1234.5")],
)  # fmt: skip
def test_an_answer_is_one_number_in_any_common_notation(tmp_path, answer, target):
    rows = [{"question": f"q{i}", "answer": answer} for i in range(2)]
    assert load_task(write(tmp_path / "x.jsonl", *rows)).train[0].target == target


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        ('{"question": "q", "answer"', "is not JSON"),
        ("[1, 2]", 'no text "question"'),
        ({"answer": "#### 1"}, 'no text "question"'),
        ({"question": "q"}, 'no text "answer"'),
        ({"question": "q", "answer": None}, 'no text "answer"'),
        ({"question": "q", "answer": "fourteen"}, "'fourteen', which is not one number"),
        ({"question": "q", "answer": "It is 3.\n####"}, "which is not one number"),
        *(
            ({"question": "q", "answer": text}, "which is not one number")
            for text in (
                "nan",
                "3,5",
                "1_000",
                "1/3",
                "x\n#### 1 234",
                "x\n#### 10:30",
                "#### 5 + 2",
            )
        ),
    ],
)
def test_a_bad_line_is_named_by_file_and_number(tmp_path, bad, complaint):
    path = write(tmp_path / "bad.jsonl", GOOD, "", bad)
    with pytest.raises(UserError, match=rf"bad\.jsonl, line 3 .*{complaint}"):
        load_task(path)


def test_missing_empty_and_binary_files_are_told_apart(tmp_path):
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    write(tmp_path / "empty.jsonl")
    write(tmp_path / "one.jsonl", GOOD)
    for name, complaint in {
        "missing": "There is no file",
        "empty": "is empty",
        "binary": "must be a UTF-8 text file",
        "one": "needs at least two",
    }.items():
        with pytest.raises(UserError, match=complaint):
            load_task(str(tmp_path / f"{name}.jsonl"))


def test_a_directory_that_is_missing_or_incomplete_is_named(tmp_path):
    with pytest.raises(UserError, match=r"There is no file .*train\.jsonl"):
        load_task("gsm8k", data=tmp_path / "nowhere")
    write(tmp_path / "train.jsonl", GOOD)
    with pytest.raises(UserError, match=r"There is no file .*test\.jsonl"):
        load_task("gsm8k", data=tmp_path)


def test_unknown_tasks_options_and_misplaced_data_are_refused(tmp_path):
    with pytest.raises(UserError, match="no task 'gsm9k'"):
        load_task("gsm9k")
    with pytest.raises(UserError, match="options are train_size, evaluation_size"):
        load_task("gsm8k", level="easy")
    with pytest.raises(UserError, match="belongs to the task gsm8k"):
        load_task("word_problems", data=tmp_path)
    with pytest.raises(UserError, match="at least one"):
        load_task(write(tmp_path / "x.jsonl", *numbered(9)), train_size=0)
