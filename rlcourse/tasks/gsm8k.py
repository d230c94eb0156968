"""Grade-school mathematics (Cobbe et al. 2021), and any other JSONL of questions and answers."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

from rlcourse import hub
from rlcourse.errors import UserError, first_line
from rlcourse.tasks.numbers import exact_number
from rlcourse.tasks.problem import Problem, Task

HUB_NAME = "openai/gsm8k"


def load(
    data: str | Path | None = None,
    seed: int = 0,
    train_size: int | None = None,
    evaluation_size: int | None = None,
    prefix: str = "",
) -> Task:
    """GSM8K: 7,473 problems to train on, 1,319 to evaluate on.

    Args:
        data: a directory with ``train.jsonl`` and ``test.jsonl``; None downloads the hub's copy.
        seed: chooses the problems where a size is given.
        train_size, evaluation_size: how many problems to keep; None keeps all.
        prefix: what is put before every question, such as "Question: ".

    Raises:
        UserError: the hub cannot be reached, or a file or a line of it cannot be used.
    """
    train, test = _from_hub() if data is None else _from_directory(Path(data))
    if prefix:
        train, test = (
            [Problem(prefix + problem.question, problem.answer) for problem in problems]
            for problems in (train, test)
        )
    return _task("gsm8k", train, test, seed, train_size, evaluation_size)


def load_jsonl(
    path: str | Path,
    seed: int = 0,
    train_size: int | None = None,
    evaluation_size: int | None = None,
) -> Task:
    """A task from your own problems: a JSON object with ``question`` and ``answer`` on each line.

    A directory holds ``train.jsonl`` and ``test.jsonl``. A single file is split: one question in
    eight, always the same ones, is kept for evaluation. Questions asked twice are kept once.

    Raises:
        UserError: a file is missing, a line cannot be used, or there are fewer than two problems.
    """
    path = Path(path)
    if path.is_dir():
        train, test = _from_directory(path)
    else:
        problems = {p.question: p for p in read_jsonl(path)}
        if len(problems) < 2:
            raise UserError(f"{path} holds {len(problems)} problem(s); a task needs at least two.")
        order = sorted(problems, key=lambda question: hashlib.sha256(question.encode()).digest())
        n_test = max(1, len(order) // 8)
        test = [problems[question] for question in order[:n_test]]
        train = [problems[question] for question in order[n_test:]]
    return _task(path.stem, train, test, seed, train_size, evaluation_size)


def read_jsonl(path: str | Path) -> list[Problem]:
    """The problems of one file, in its order.

    An answer ends in ``#### N``; an answer that is nothing but a number stands for ``#### N``.
    N may be written as "$1,234.50", 1e5 or 1/2.

    Raises:
        UserError: the file is missing, unreadable or empty, or names the first line that is not a
            JSON object with a question and an answer that has a final number.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        raise UserError(
            f"There is no file {path}; write one with a JSON object on each line."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read ({error}); it must be a UTF-8 text file.") from None
    problems = [
        _parse(line, f"{path}, line {number}")
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]
    if not problems:
        raise UserError(
            f"{path} is empty; put one JSON object with question and answer on each line."
        )
    return problems


def _parse(line: str, place: str) -> Problem:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise UserError(f"{place} is not JSON ({error}); fix or remove that line.") from None
    return _problem(row, place)


def _problem(row: object, place: str) -> Problem:
    if not isinstance(row, dict) or not isinstance(row.get("question"), str):
        raise UserError(f'{place} has no text "question"; fix or remove it.')
    answer = row.get("answer")
    if isinstance(answer, int | float) and not isinstance(answer, bool):
        answer = str(answer)
    if not isinstance(answer, str):
        raise UserError(f'{place} has no text "answer"; fix or remove it.')
    if "####" not in answer:
        answer = f"#### {answer.strip()}"
    working, _, written = answer.rpartition("####")
    number = exact_number(written)
    if number is None:
        raise UserError(
            f"{place} ends in {written.strip()[:40]!r}, which is not one number: end the answer "
            "with #### and a number such as 1234.5, and nothing after it."
        )
    return Problem(row["question"], f"{working}#### {number}")


def _from_directory(directory: Path) -> tuple[list[Problem], list[Problem]]:
    return read_jsonl(directory / "train.jsonl"), read_jsonl(directory / "test.jsonl")


def _from_hub() -> tuple[list[Problem], list[Problem]]:
    from datasets import load_dataset

    try:
        hub.ask_once(HUB_NAME, "README.md", repo_type="dataset")
        splits = load_dataset(HUB_NAME, "main")
    except Exception as error:  # the hub's client fails in as many ways as a network can
        raise UserError(
            f"GSM8K could not be fetched from the Hugging Face hub ({first_line(error)}); connect "
            "to the network, or pass data=DIRECTORY with its train.jsonl and test.jsonl."
        ) from error
    train, test = (
        [_problem(row, f"{HUB_NAME} {name}, row {i}") for i, row in enumerate(splits[name])]
        for name in ("train", "test")
    )
    return train, test


def _task(
    name: str,
    train: Sequence[Problem],
    test: Sequence[Problem],
    seed: int,
    train_size: int | None,
    evaluation_size: int | None,
) -> Task:
    rng = Random(seed)
    return Task(name, _subset(train, train_size, rng), _subset(test, evaluation_size, rng))


def _subset(problems: Sequence[Problem], size: int | None, rng: Random) -> Sequence[Problem]:
    if size is None or size >= len(problems):
        return problems
    if size < 1:
        raise UserError(f"A task of {size} problems cannot be used; ask for at least one.")
    return rng.sample(problems, size)
