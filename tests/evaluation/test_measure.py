"""Evaluation against policies whose accuracy is known beforehand."""

import json
from dataclasses import replace

import pytest
import torch

from rlcourse.errors import UserError
from rlcourse.evaluation import Evaluation, Interval, evaluate_policy, greedy_accuracy
from rlcourse.evaluation.transcripts import telling, transcripts_table
from rlcourse.policy import Rollouts
from rlcourse.tasks.problem import Problem


class Scripted:
    """Right greedily where `knows(question)`, and in the first c samples of each question."""

    device = torch.device("cpu")
    eos_ids = (1,)

    def __init__(self, knows, right_samples):
        self.knows, self.right_samples = knows, right_samples

    def format_prompt(self, question, system=None):
        return question

    def sample(self, prompts, group_size=1, temperature=1.0, max_tokens=3, **unused):
        self.texts = []
        for question in prompts:
            for i in range(group_size):
                right = (
                    self.knows(question) if temperature == 0 else i < self.right_samples(question)
                )
                self.texts.append(f"#### {question if right else 'no'}")
        tokens = torch.tensor([[5, 1, 0]]).repeat(len(self.texts), 1)
        tokens[0] = torch.tensor([5, 5, 5])  # the first row never ends
        mask = torch.tensor([[True, True, False]]).repeat(len(self.texts), 1)
        mask[0] = True
        zeros = torch.zeros(len(self.texts), 3)
        return Rollouts(tokens[:, :1], mask[:, :1], tokens, mask, zeros, group_size)

    def decode(self, rollouts):
        return self.texts


PROBLEMS = [Problem(str(n), f"reason #### {n}") for n in range(10)]


@pytest.fixture
def evaluation():
    scripted = Scripted(knows=lambda q: int(q) < 7, right_samples=lambda q: int(q) % 5)
    return evaluate_policy(scripted, PROBLEMS, samples=4, max_tokens=3, batch=15)


def test_accuracy_and_pass_at_k_are_the_known_ones(evaluation):
    assert float(evaluation.accuracy) == pytest.approx(0.7)
    assert float(evaluation.sampled_accuracy) == pytest.approx((0 + 1 + 2 + 3 + 4) / 20)
    assert list(evaluation.pass_at) == [1, 2, 4]
    assert float(evaluation.pass_at[1]) == pytest.approx(0.5)
    # one wrong pair in C(4, 2) = 6 for c = 2, three for c = 1, none for c ≥ 3
    assert float(evaluation.pass_at[2]) == pytest.approx((0 + 3 / 6 + 5 / 6 + 1 + 1) / 5)
    assert float(evaluation.pass_at[4]) == pytest.approx(0.8)


def test_intervals_hold_their_value_and_are_proper(evaluation):
    for interval in (
        evaluation.accuracy,
        evaluation.sampled_accuracy,
        *evaluation.pass_at.values(),
    ):
        assert 0 <= interval.low <= interval.value <= interval.high <= 1
        assert interval.low < interval.high
    assert Interval.of([1.0, 1.0, 1.0]) == Interval(1.0, 1.0, 1.0)


def test_length_and_cut_off_count_the_end_token(evaluation):
    # batches of 3, 3, 3, 1 problems; the first greedy one and the first sample of each never end
    assert evaluation.tokens == 50 * 2 + 8
    assert float(evaluation.length) == evaluation.mean_length == pytest.approx(84 / 40)
    assert float(evaluation.cut_off) == evaluation.clipped_ratio == pytest.approx(4 / 40)


def test_transcripts_say_what_was_read_and_whether_it_is_right(evaluation):
    assert [t.correct for t in evaluation.transcripts] == [True] * 7 + [False] * 3
    assert evaluation.transcripts[3].given == "3" and evaluation.transcripts[9].given is None
    assert [t.samples_correct for t in evaluation.transcripts] == [0, 1, 2, 3, 4] * 2


def test_an_evaluation_survives_json(evaluation):
    assert Evaluation.from_dict(json.loads(json.dumps(evaluation.to_dict()))) == evaluation
    assert "transcripts" not in evaluation.to_dict(transcripts=False)


def test_evaluation_is_a_function_of_its_seed(policy, task):
    one, two, other = (
        evaluate_policy(policy, task.evaluation, 4, max_tokens=8, seed=seed) for seed in (5, 5, 6)
    )
    assert one.tokens == two.tokens != other.tokens
    assert one.transcripts == two.transcripts


def test_without_problems_there_is_nothing_to_evaluate(policy):
    with pytest.raises(UserError, match="no problems"):
        evaluate_policy(policy, [])


def test_the_quick_accuracy_agrees(evaluation):
    scripted = Scripted(knows=lambda q: int(q) < 7, right_samples=lambda q: 0)
    from rlcourse.tasks import extract_answer

    assert greedy_accuracy(scripted, PROBLEMS, 3, extract_answer) == pytest.approx(0.7)


def test_a_table_marks_right_and_wrong_and_escapes_everything(evaluation):
    hostile = Problem("<b>1</b>", "#### 1")
    scripted = Scripted(knows=lambda q: False, right_samples=lambda q: 0)
    html = transcripts_table(scripted, problems=[hostile])._repr_html_()
    assert "<b>1" not in html and "&lt;b&gt;1&lt;/b&gt;" in html
    table = transcripts_table(evaluation, evaluation, count=4)
    assert table._repr_html_().count("✓") + table._repr_html_().count("✗") == 8
    assert "before" in str(table) and "after" in str(table)


def test_problems_whose_outcome_changed_are_shown_first(evaluation):
    def column(outcomes):
        return [
            replace(t, greedy=replace(t.greedy, correct=o == "1"))
            for t, o in zip(evaluation.transcripts, outcomes, strict=True)
        ]

    chosen = telling(column("0000011111"), column("1110010111"), count=8)
    assert chosen[:3] == [0, 1, 2]  # gained
    assert set(chosen[3:5]) == {6, 3}  # lost, still wrong
    assert len(chosen) == len(set(chosen)) == 8
