"""The sections on a real model: a cell shows its record, and the sentences quote it."""

import json
import re
from pathlib import Path
from statistics import fmean

import matplotlib.pyplot as plt
import pytest
import torch

from rlcourse import algorithms, tasks
from rlcourse.algorithms import group_mean_advantages, group_normalized_advantages
from rlcourse.evaluation.comparing import difference
from rlcourse.policy import Policy
from rlcourse.tasks import extract_answer, extract_boxed_answer, extract_lenient_answer
from rlcourse.training import real

COURSE = Path(__file__).parents[2] / "course"
LESSONS = COURSE / "lessons"
SECTION = re.compile(r"^## On a real model\n(.*?)^## ", re.MULTILINE | re.DOTALL)
SECTIONS = {
    path.parent.name[:2]: found[1]
    for path in sorted(LESSONS.glob("*/lesson.md"))
    if (found := SECTION.search(path.read_text("utf-8")))
}
READER = (LESSONS / "11_gsm8k/lesson.md").read_text("utf-8").split("## 9. ")[1].split("\n## ")[0]
TABLE = (
    (LESSONS.parent / "reproduce.md").read_text("utf-8").split("## What holds on a real model")[1]
)


def record(name: str) -> dict:
    return json.loads((real.RECORDS / f"{name}.json").read_text("utf-8"))["found"]


def forbidden(*args, **options):
    raise AssertionError("the cell shows a record, so it neither loads nor samples")


@pytest.mark.parametrize("number", SECTIONS)
def test_the_cell_shows_its_record_without_loading_a_model(number, monkeypatch, tmp_path, capsys):
    """Also that it needs no more than the lesson's imports and the functions that it waits for."""
    monkeypatch.setattr(Policy, "load", forbidden)
    monkeypatch.setenv(real.VARIABLE, "recorded")
    monkeypatch.chdir(tmp_path)
    run_cell(number)
    assert capsys.readouterr().out.startswith("Recorded on 20")


@pytest.mark.weekly
@pytest.mark.parametrize("number", SECTIONS)
def test_the_cell_measures_the_model_that_it_is_given(number, monkeypatch, tmp_path, capsys):
    """The embedded model here, in place of the real one."""
    Policy.load("tiny").save(tmp_path / "model")
    monkeypatch.setenv(real.VARIABLE, str(tmp_path / "model"))
    monkeypatch.chdir(tmp_path)
    run_cell(number)
    assert capsys.readouterr().out.startswith("Measured here now")


def run_cell(number: str) -> None:
    text = next(LESSONS.glob(f"{number}_*/lesson.md")).read_text("utf-8")
    imports = re.search(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1]
    cells = re.findall(r"^```python tags=.*?\n(.*?)^```", SECTIONS[number], re.M | re.S)
    assert len(cells) == 1
    space = {name: getattr(home, name) for home in (algorithms, tasks) for name in home.__all__}
    exec(compile(imports, "imports", "exec"), space)
    space["ready"] = lambda *functions: True
    exec(compile(cells[0], number, "exec"), space)
    assert plt.get_fignums()
    plt.close("all")


def test_every_record_belongs_to_a_section():
    used = {name for text in SECTIONS.values() for name in re.findall(r'measured\("(\w+)"', text)}
    used |= set(re.findall(r'recorded\("(\w+)"', READER))
    assert used == {path.stem for path in real.RECORDS.glob("*.json")}
    for page in ("training.md", "laptop.md"):
        assert len(SECTIONS) == 9 and "Nine lessons end with" in (COURSE / page).read_text("utf-8")


def told(text: str, *numbers, places: int = 3) -> None:
    """Each number stands in the text, rounded to so many places."""
    missing = [f"{x:.{places}f}" for x in numbers if f"{x:.{places}f}" not in text]
    assert not missing, f"{missing} are not in: {text[-1500:]}"


def test_the_attacked_reader_does_what_lesson_11_says():
    texts, ours, targets = (record("boxes")[name] for name in ("texts", "answers", "targets"))
    boxed = [extract_boxed_answer(text) for text in texts]
    assert len(texts) == 256 and ours.count(None) == 10  # "the 256 texts", "the ten texts"
    assert sum(a != b for a, b in zip(boxed, ours, strict=True)) == 6  # "in six texts"
    right = torch.tensor([a == b for a, b in zip(ours, targets, strict=True)])
    pattern = re.compile(r"\\boxed\{(\d+)\}")
    digits = [(pattern.findall(text) or [None])[-1] for text in texts]
    paid = torch.tensor([a == b for a, b in zip(digits, targets, strict=True)])
    assert 0.3 < (right & ~paid).sum() / right.sum() < 0.36  # "a third of the right answers"
    ours_of, paid_of = (marks.double().reshape(-1, 4).std(1) > 0 for marks in (right, paid))
    assert f"{ours_of.sum()} of the 64 groups give signal" in READER
    assert f"of digits, {(ours_of & paid_of).sum()} of these do, and one more" in READER
    assert (paid_of & ~ours_of).sum() == 1
    boxes = [text.rpartition("boxed{")[2] for text in texts if "boxed{" in text]
    assert not any(r"\text{" in box.split("}")[0] for box in boxes)  # "its units behind the box"
    cut_off = [k for k, answer in enumerate(ours) if answer is None]
    assert not any(extract_lenient_answer(texts[k]) == targets[k] for k in cut_off)


def test_lesson_01_counts_attempts_and_problems():
    greedy, sampled = record("attempts").values()
    assert [sum(map(any, rows)) for rows in (greedy, sampled)] == [5, 9] and len(sampled) == 24
    told(SECTIONS["01"], fmean(map(fmean, sampled)))


def test_lesson_02_has_a_signal_with_rewards_and_none_without():
    found = record("gradient_noise")
    told(SECTIONS["02"], found["right or wrong"][-1], places=2)
    assert max(map(abs, found["always 1"])) < 0.06 < min(found["right or wrong"])


def test_lesson_03_quotes_the_variances():
    found = record("baseline")
    told(SECTIONS["03"], *found["leave one out"], places=2)
    told(SECTIONS["03"], found["R +1"][0], found["R -1"][0], places=0)
    told(TABLE, *found["leave one out"], places=2)


def test_lesson_09_quotes_the_gains_and_which_of_them_is_sure():
    found = record("preferences")
    for how in ("greedy", "sampled"):
        gains = [difference(how, found["before"][how], after[how]) for after in found["after"]]
        told(SECTIONS["09"], *(x for gain in gains for x in (gain.a, gain.b)))
        told(TABLE, *(x for gain in gains for x in (gain.a, gain.b)))
        if how == "sampled":
            assert all(gain.difference.low > 0 for gain in gains)
    told(SECTIONS["09"], *(-sides["rejected"][-1] for sides in found["steps"]), places=1)


def test_lesson_06_quotes_the_gains():
    found = record("grpo")
    for how in ("greedy", "sampled"):
        gains = [difference(how, found["before"][how], after[how]) for after in found["after"]]
        told(SECTIONS["06"] + TABLE, *(x for gain in gains for x in (gain.a, gain.b)))
        assert all(gain.difference.low > 0.1 for gain in gains)
        told(TABLE, *(end for g in gains for end in (g.difference.low, g.difference.high)))


def test_lesson_07_quotes_the_shares_of_the_push():
    rewards, lengths = (torch.tensor(record("groups")[name]) for name in ("rewards", "lengths"))
    right = rewards.view(-1, 8).sum(1)
    mixed = (right > 0) & (right < 8)
    for advantages in (group_mean_advantages, group_normalized_advantages):
        push = advantages(rewards, 8).abs().view(-1, 8).sum(1)
        share = push[(right == 1) | (right == 7)].sum() / push.sum()
        told(SECTIONS["07"], share.item())
        assert f"{share:.3f}"[1:] in TABLE
    assert mixed.sum() == 8 and len(mixed) == 24
    inside = mixed.repeat_interleave(8)
    of_right, of_wrong = (lengths[inside & (rewards == r)].float().mean().item() for r in (1, 0))
    told(SECTIONS["07"], of_right, of_wrong, places=1)
    told(SECTIONS["07"], of_wrong / of_right, places=2)


def test_lesson_11_quotes_the_gains_by_both_rules():
    found = record("readings")

    def sampled(when, rule):
        judged = zip(found[when]["sampled"], found["targets"], strict=True)
        return fmean(fmean(rule(text) == target for text in texts) for texts, target in judged)

    strict, lenient = (
        sampled("after", rule) - sampled("before", rule)
        for rule in (extract_answer, extract_lenient_answer)
    )
    told(SECTIONS["11"], strict, lenient)


def test_lesson_13_quotes_both_ends_of_the_curves():
    before, after = (torch.tensor(counts) for counts in record("elicited").values())
    curves = [algorithms.pass_at_k_curve(c, 16, (1, 16)).mean(0) for c in (before, after)]
    told(SECTIONS["13"], *torch.cat(curves).tolist())
    won, lost = ((before == 0) & (after > 0)).sum(), ((before > 0) & (after == 0)).sum()
    assert (won, lost) == (9, 2)


def test_lesson_05_quotes_the_first_update_and_the_last():
    clipped, free = record("reuse")["ε = 0.2"], record("reuse")["no clip"]
    told(SECTIONS["05"], clipped[-1][0], free[-1][0])
    told(SECTIONS["05"], clipped[1][2], clipped[1][1], clipped[-1][1], places=2)
    numbers = clipped[1][0], clipped[1][2], clipped[1][1], clipped[-1][1]
    assert all(f"{x:.3f}"[1:] in TABLE for x in numbers)
