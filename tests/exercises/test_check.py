"""What a student reads: the verdict, the named mistake, and what to do."""

import json
import signal
import subprocess
import sys
from functools import partial

import pytest
import torch

from rlcourse import check, progress, ready
from rlcourse.checks.telling.result import MIME_TYPE, CheckFailed
from rlcourse.errors import UserError
from rlcourse.exercises import get
from rlcourse.student import checking, record
from rlcourse.student.patience import patience


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path))
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    return tmp_path


def reinforce_loss(logprobs, advantages, mask):
    return -(advantages.detach() * (logprobs * mask).sum(dim=1)).mean()


def summed(logprobs, mask):
    return (logprobs * mask).sum(dim=1)


def loss(body):
    """A wrong reinforce_loss of the given body."""
    return lambda logprobs, advantages, mask: body(logprobs, advantages.detach(), mask)


def examine(fn, **options):
    return check(fn, "reinforce_loss", seed=1, **options)


def test_right_function_passes_with_full_points():
    result = check(reinforce_loss)
    assert result.passed and result.score == 1.0
    assert result.points == 4.0 and type(result.points) is float
    assert result.message.startswith("✓ reinforce_loss")


def test_unfinished_function_is_told_how_to_begin_and_scores_nothing():
    def reinforce_loss(logprobs, advantages, mask):
        raise NotImplementedError()

    result = check(reinforce_loss)
    assert not result.passed and result.score == 0 and result.unwritten
    assert "is not written yet" in result.message and "hint(reinforce_loss)" in result.message


def test_score_is_half_the_share_of_agreeing_cases():
    result = examine(loss(lambda lp, r, m: -(r * lp.sum(1)).mean()))
    assert 0 < result.agreeing < result.cases
    assert result.score == pytest.approx(0.5 * result.agreeing / result.cases)


def test_mistake_is_named_though_padding_also_gives_nan_and_advantages_leak():
    def token_mean(logprobs, advantages, mask):
        return -(advantages * summed(logprobs, mask) / mask.sum(1)).mean()

    result = examine(token_mean)
    assert result.mistake == "a mean over each completion's tokens in place of the sum"
    assert "not finite" in result.message and "Gradient flows into `advantages`" in result.message


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (loss(lambda lp, r, m: -2.5 * (r * summed(lp, m)).mean()), "times 2.5"),
        (loss(lambda lp, r, m: -(r * summed(2 * lp - lp.detach(), m)).mean()), "but your gradient"),
        (loss(lambda lp, r, m: -(r * summed(lp, m))), "It returns shape"),
        (loss(lambda lp, r, m: None), "does it end in `return`?"),
        (loss(lambda lp, r, m: 1.0), "a Python float where a tensor is expected"),
        (loss(lambda lp, r, m: lp.sum() * 0 + 7), "It returns 7 whatever the arguments"),
        (loss(lambda lp, r, m: -(r * summed(lp, m)).mean().float()), "float32 where float64"),
        (loss(lambda lp, r, m: -(r * summed(lp.mul_(m), m)).mean()), "changes its argument"),
        (loss(lambda lp, r, m: torch.rand((), dtype=lp.dtype)), "two different results"),
        (loss(lambda lp, a, m: -(a.relu() * summed(lp, m)).mean()), "an advantage is negative"),
        (lambda logprobs, r, m: logprobs.sum(), "your parameters are `logprobs`, `r`, `m`"),
    ],
)
def test_unknown_fault_is_described(fn, words):
    result = examine(fn)
    assert not result.passed and result.mistake is None
    assert words in result.message


def test_hidden_message_discloses_no_number():
    def telltale(logprobs, advantages, mask):
        raise ValueError(f"{advantages.tolist()}")

    result = examine(telltale, hidden=True)
    assert "ValueError" in result.message and "[" not in result.message.partition("`")[0]
    result = examine(loss(lambda lp, r, m: -(r * lp.sum(1)).mean()), hidden=True)
    assert result.mistake and result.example is None and "Smallest case" not in result.message
    result = examine(lambda logprobs, advantages, mask: print(advantages), hidden=True)
    assert "printed" not in result.message


def test_nothing_reaches_stdout_or_stderr(capfd):
    def noisy(logprobs, advantages, mask):
        import warnings

        warnings.warn("careful", stacklevel=1)
        print("loud", file=sys.stderr)
        return reinforce_loss(logprobs, advantages, mask)

    result = examine(noisy)
    assert result.passed and "careful" in result.message and "loud" in result.message
    assert capfd.readouterr() == ("", "")


STEP_ON_STUB = """
def reinforce_loss(logprobs, advantages, mask):
    raise NotImplementedError()

def reinforce_step(policy, optimizer, batch, max_grad_norm=1.0):
    optimizer.zero_grad()
    loss = reinforce_loss(policy.logprobs(batch), batch.rewards, batch.mask)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(policy.parameters(), max_grad_norm)
    optimizer.step()
    return loss.item()
"""


def test_ready_asks_for_the_unfinished_function(capsys):
    namespace = {"torch": torch}
    exec(STEP_ON_STUB, namespace)
    assert ready(reinforce_loss)
    assert not ready(reinforce_loss, namespace["reinforce_step"])
    assert "Finish reinforce_loss first" in capsys.readouterr().out


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(UserError, match="reinforce_loss"):
        get("reinforce_los")
    with pytest.raises(UserError, match="without quotes"):
        check("reinforce_loss")


def test_notebook_output_carries_the_verdict_for_tools():
    result = examine(loss(lambda lp, r, m: -(r * lp.sum(1)).mean()))
    bundle = result._repr_mimebundle_()
    verdict = json.loads(json.dumps(bundle[MIME_TYPE]))
    assert verdict["mistake"] == "a sum that counts padding" and verdict["points"] == result.points
    assert bundle["text/plain"] == result.message
    assert "padding" in bundle["text/html"] and "repeating-linear-gradient" in bundle["text/html"]


def test_prices_in_a_message_are_no_formula_to_jupyterlab():
    html = check(lambda text: "$7 $8", exercise="extract_answer", seed=0)._repr_html_()
    assert "$" in html and "$" not in html.replace("<span>$</span>", "")


def test_html_escapes_what_the_student_wrote():
    def sneaky(logprobs, advantages, mask):
        raise ValueError("<script>alert(1)</script>")

    assert "<script>" not in examine(sneaky)._repr_html_()


def test_validate_raises_only_the_message_and_autograde_never(monkeypatch):
    wrong = loss(lambda lp, r, m: lp.sum())
    monkeypatch.setenv("NBGRADER_EXECUTION", "validate")
    assert check(reinforce_loss).passed
    with pytest.raises(CheckFailed) as failure:
        examine(wrong)
    assert failure.value._render_traceback_()[0].startswith("✗ reinforce_loss")
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert not examine(wrong).passed


def test_progress_keeps_the_best_and_survives_corruption(home):
    check(reinforce_loss)
    examine(loss(lambda lp, r, m: lp.sum()))
    entry = record.load("reinforce_loss")
    assert entry == {"score": 1.0, "passed": True, "once": [], "attempts": 2}
    assert "1 of" in repr(progress()) and "reinforce_loss" in progress()._repr_html_()
    (home / "progress" / "reinforce_loss.json").write_text('{"score": "x')
    assert not record.load("reinforce_loss")["passed"]
    check(reinforce_loss)
    assert record.load("reinforce_loss")["passed"]
    assert [p.suffix for p in (home / "progress").iterdir()] == [".json"]


def test_progress_is_not_written_for_hidden_checks_or_under_nbgrader(home, monkeypatch):
    check(reinforce_loss, hidden=True)
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    check(reinforce_loss)
    assert list(home.iterdir()) == []


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no alarm on this system")
def test_a_function_that_never_ends_is_interrupted_and_its_line_named(monkeypatch):
    def forever(logprobs, advantages, mask):
        while mask.shape[0] != mask.shape[1]:
            pass
        return reinforce_loss(logprobs, advantages, mask)

    monkeypatch.setattr(checking, "patience", partial(patience, 0.2, 0.2))
    before = signal.getsignal(signal.SIGPROF)
    result = examine(forever)
    assert not result.passed and 0 < result.agreeing < result.cases
    assert "is there a loop that never ends?" in result.message
    assert signal.getsignal(signal.SIGPROF) is before


@pytest.mark.slow
def test_beside_eight_busy_processes_a_check_says_the_same_letter_by_letter():
    def token_entropy(logits):  # is repaired
        logp = logits.log_softmax(-1)
        return -(logp.exp() * logp).sum(1)

    def optimal_baseline(rewards, score_norms_squared):  # is not explained
        return rewards.sin().sum() + score_norms_squared.cos().mean()

    def said():
        return [check(fn, seed=3).message for fn in (token_entropy, optimal_baseline)]

    quiet = said()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(8)]
    try:
        assert said() == quiet
    finally:
        for process in busy:
            process.kill()
            process.wait()
