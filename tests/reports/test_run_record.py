"""A run's record is read from its directory without its weights; other directories are refused."""

import json

import pytest
import torch
from echo import echo_policy, echo_recipe, echo_task

from rlcourse.errors import UserError
from rlcourse.reports import read_run, write_report
from rlcourse.training import train


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "echo"
    return train(echo_recipe(), out, policy=echo_policy(), task=echo_task(), progress=False)


@pytest.fixture
def directory(finished, tmp_path):
    """A copy of the run's files, without its weights."""
    for file in finished.directory.iterdir():
        if file.is_file():
            (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def test_the_record_is_read_without_the_weights(finished, directory):
    record, memory = read_run(directory), finished.record()
    assert record.recipe == memory.recipe
    assert record.metrics == memory.metrics
    assert record.before == memory.before and record.after == memory.after
    assert record.result == json.loads((directory / "result.json").read_text())
    assert record.finished and memory.finished
    assert (record.tokens, record.seconds) == pytest.approx((finished.tokens, finished.seconds))


def test_the_accuracy_on_pairs_is_read(tmp_path):
    def reward(completions):
        return torch.tensor([float(len(text)) for text in completions])

    parts = {"policy": echo_policy(), "task": echo_task(), "reward": reward}
    made = train(echo_recipe("reward_model"), tmp_path, **parts, progress=False)
    assert read_run(tmp_path).pair_accuracy == made.pair_accuracy
    assert "Held-out pairs" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_warm_start_that_is_going_on_is_named(directory):
    (directory / "result.json").unlink()
    (directory / "warm_start").mkdir()
    assert (
        f"its warm start is not done, see {directory / 'warm_start'}" in read_run(directory).state()
    )
    (directory / "warm_start" / "result.json").write_text("{}")
    assert "warm start" not in read_run(directory).state()


@pytest.mark.parametrize(
    "name, text",
    [
        ("recipe.yaml", "a: [1"),
        ("recipe.yaml", "just text"),
        ("recipe.yaml", "algorithm: grpo"),
        ("result.json", "{"),
        ("evaluation_after.json", "{}x"),
        ("evaluation_after.json", '{"problems": 3}'),
        ("metrics.jsonl", "{\n{}\n"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_in_one_sentence(directory, name, text):
    (directory / name).write_text(text)
    with pytest.raises(UserError, match=name) as failure:
        read_run(directory)
    assert "\n" not in str(failure.value)


def test_what_holds_no_run_is_refused(tmp_path, directory):
    for path in (tmp_path / "nowhere", directory / "metrics.jsonl"):
        with pytest.raises(UserError, match="holds no run"):
            read_run(path)


def test_a_page_never_takes_the_place_of_another_file(directory):
    before = (directory / "recipe.yaml").read_bytes()
    assert write_report(directory) == directory / "report.html"  # ours: again
    with pytest.raises(UserError, match=r"ends in \.html"):
        write_report(directory, directory / "recipe.yaml")
    other = directory / "other.html"
    other.write_text("<p>mine</p>")
    with pytest.raises(UserError, match="not made by rlcourse"):
        write_report(directory, other)
    assert (directory / "recipe.yaml").read_bytes() == before
    assert other.read_text() == "<p>mine</p>"
