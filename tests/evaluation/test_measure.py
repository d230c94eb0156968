"""Evaluation against policies whose accuracy is known beforehand."""

import json
from dataclasses import replace
from statistics import fmean

import pytest
import torch
from scripted import PROBLEMS, Scripted, right_when

from rlcourse.errors import UserError
from rlcourse.evaluation import (
    Evaluation,
    compare,
    evaluate_policy,
    evaluation_table,
    greedy_accuracy,
)
from rlcourse.tasks import extract_answer, extract_tagged_answer, format_reward


@pytest.fixture
def evaluation():
    policy = right_when(lambda q: int(q) < 7, lambda q: int(q) % 5)
    return evaluate_policy(policy, PROBLEMS, samples=4, batch=15)


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
        *evaluation.majority_at.values(),
    ):
        assert 0 <= interval.low <= interval.value <= interval.high <= 1
        assert interval.low < interval.high


def test_the_majority_is_asked_in_every_whole_run_of_k_samples():
    answers = {"0": "0 0 1 0 9 9", "1": "no 1 no 2 no 1", "2": "no no no no no no"}
    policy = Scripted(lambda q, i: f"#### {answers[q].split()[i or 0]}")
    evaluation = evaluate_policy(policy, PROBLEMS[:3], samples=6)
    votes = {k: float(interval) for k, interval in evaluation.majority_at.items()}
    assert votes[1] == float(evaluation.sampled_accuracy) == pytest.approx((3 / 6 + 2 / 6 + 0) / 3)
    # 0: {0 0} {1 0} {9 9}, of which a tie goes to the first; 1: {1} {2} {1}, "no" has no vote
    assert votes[2] == pytest.approx((1 / 3 + 2 / 3 + 0) / 3)
    assert votes[4] == pytest.approx((1 + 1 + 0) / 3)  # one run; the last two samples make none
    assert votes[6] == pytest.approx((1 + 1 + 0) / 3)


def test_strict_and_lenient_reading_and_the_format_rate():
    forms = ["#### {}", "so {}", "it is {}.", "no number"]
    policy = Scripted(lambda q, i: forms[(int(q) + (i or 0)) % 4].format(q))
    evaluation = evaluate_policy(policy, PROBLEMS[:8], samples=3)
    assert float(evaluation.accuracy) == float(evaluation.format_rate) == 2 / 8
    assert float(evaluation.lenient_accuracy) == 6 / 8
    # of the forms that a problem's three samples show, "####" is one for three problems of four
    assert float(evaluation.sampled_format_rate) == pytest.approx(1 / 4)
    assert float(evaluation.sampled_accuracy) == pytest.approx(1 / 4)
    assert float(evaluation.sampled_lenient_accuracy) == pytest.approx(3 / 4)
    assert evaluation.transcripts[1].greedy.given is None
    assert evaluation.transcripts[1].greedy.lenient == "1"


def test_mean_accuracy_and_mean_format_reward_over_samples():
    def says(question, i):
        return f"<think>\n</think> <answer>{question}</answer>" if i else f"<answer>{question}"

    evaluation = evaluate_policy(
        Scripted(says), PROBLEMS, 4, 0.7, extract=extract_tagged_answer, format_reward=format_reward
    )
    assert evaluation.samples == 4 and evaluation.temperature == 0.7
    assert float(evaluation.sampled_accuracy) == pytest.approx(3 / 4)
    assert float(evaluation.sampled_format_reward) == pytest.approx((0.1 + 3 * 0.5) / 4)
    assert float(evaluation.format_reward) == pytest.approx(0.1)
    plain = evaluate_policy(Scripted(says), PROBLEMS, 4, 0.7)
    assert plain.format_reward is plain.sampled_format_reward is None


def test_lengths_count_the_end_token_and_tell_right_from_wrong():
    def says(question, i):
        if i is None:
            return "a b c d"
        return f"#### {question}" if i < int(question) % 3 else "one two three…"

    evaluation = evaluate_policy(Scripted(says), PROBLEMS[:6], samples=2)
    # problems with 0, 1, 2 right samples, twice; right ones have 3 tokens, wrong ones 3, cut off
    assert float(evaluation.length) == evaluation.mean_length == 3
    assert float(evaluation.truncated) == pytest.approx(0.5)
    assert evaluation.tokens == 6 * 5 + 12 * 3
    uneven = evaluate_policy(Scripted(lambda q, i: f"#### {i}" + " x" * (i or 0)), PROBLEMS, 3)
    # sample i of every problem has 3 + i tokens; it is right for problem i
    assert float(uneven.length_right) == pytest.approx((3 + 4 + 5) / 3)
    assert float(uneven.length_wrong) == pytest.approx((4.5 + 4 + 3.5 + 7 * 4) / 10)
    unmarked = evaluate_policy(Scripted(lambda q, i: f"it is {q}"), PROBLEMS, 2)
    assert unmarked.length_right is None and float(unmarked.length_wrong) == 4


def test_an_evaluation_survives_json(evaluation):
    asked = evaluate_policy(Scripted(lambda q, i: "x"), PROBLEMS, 2, format_reward=format_reward)
    for one in (evaluation, asked):
        assert Evaluation.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    numbers = evaluation.to_dict(transcripts=False)
    assert "transcripts" not in numbers
    assert Evaluation.from_dict(numbers) == replace(evaluation, transcripts=[])


def test_what_a_batch_draws_does_not_depend_on_the_batches_before_it(policy, task):
    problems = list(task.evaluation) * 2
    options = {"samples": 4, "max_tokens": 8, "batch": 40}
    assert len(problems) == 20
    whole = evaluate_policy(policy, problems, **options)
    other = evaluate_policy(policy, problems[5:10] * 2 + problems[10:], **options)
    assert whole.transcripts[10:] == other.transcripts[10:]
    assert whole.transcripts[:10] != other.transcripts[:10]
    first, second = (whole.transcripts[start : start + 10] for start in (0, 10))
    assert [t.greedy for t in first] == [t.greedy for t in second]
    assert [t.samples for t in first] != [t.samples for t in second]  # the same questions again


def test_without_problems_there_is_nothing_to_evaluate(policy, task):
    with pytest.raises(UserError, match="no problems"):
        evaluate_policy(policy, [])
    with pytest.raises(UserError, match="samples=-1 must be at least 0 and batch=8 at least 1"):
        evaluate_policy(policy, task.evaluation, samples=-1, batch=8)


def test_without_samples_only_greedy_completions_are_told_and_compared(evaluation):
    policy = right_when(lambda q: int(q) < 7)
    greedy = evaluate_policy(policy, PROBLEMS, samples=0, batch=15)
    assert greedy.accuracy == evaluation.accuracy and greedy.sampled_accuracy is None
    assert Evaluation.from_dict(json.loads(json.dumps(greedy.to_dict()))) == greedy
    assert float(greedy.length) == pytest.approx(fmean(t.greedy.length for t in greedy.transcripts))
    for told in (evaluation_table(greedy), str(greedy), greedy._repr_html_()):
        assert "pass@" not in told and "nan" not in told and "samples right" not in told
    against = compare(greedy, evaluation)
    assert against.verdict == "Greedy accuracy: the same on each of the 10 problems."
    assert {d.name for d in against.differences} == {"accuracy", "lenient_accuracy", "format_rate"}


def test_the_quick_accuracy_agrees():
    policy = right_when(lambda q: int(q) < 7, memory=3)
    assert greedy_accuracy(policy, PROBLEMS, 3, extract_answer) == pytest.approx(0.7)


# Memory


@pytest.mark.parametrize(
    "memory, largest, times", [(1, 1, 5), (3, 2, 4), (7, 5, 3), (8, 8, 2), (20, 20, 1)]
)
def test_where_memory_runs_out_the_batch_is_halved_and_nothing_else_changes(
    memory, largest, times, capsys
):
    def made(**options):
        policy = right_when(lambda q: int(q) < 7, lambda q: int(q) % 5, **options)
        return policy, evaluate_policy(policy, PROBLEMS, samples=4, batch=64)

    policy, evaluation = made(memory=memory)
    assert replace(evaluation, seconds=0) == replace(made()[1], seconds=0)
    assert policy.largest == largest
    messages = capsys.readouterr().err.splitlines()
    assert messages[0] == "rlcourse: out of memory with 40 completions at once; continuing with 20"
    assert len(messages) == times


def test_a_halved_batch_draws_what_the_smaller_batch_draws(policy, task):
    class Cramped(type(policy)):
        def sample(self, prompts, group_size=1, **options):
            if len(prompts) * group_size > 10:
                raise torch.OutOfMemoryError
            return super().sample(prompts, group_size=group_size, **options)

    options = {"samples": 4, "max_tokens": 8}
    cramped = Cramped(policy.model, policy.tokenizer)
    halved = evaluate_policy(cramped, task.evaluation, batch=32, **options)
    small = evaluate_policy(policy, task.evaluation, batch=8, **options)
    assert replace(halved, seconds=0) == replace(small, seconds=0)


def test_a_completion_that_does_not_fit_alone_is_one_sentence():
    policy = right_when(lambda q: True, memory=0)
    with pytest.raises(UserError, match="one completion at a time does not fit into memory"):
        evaluate_policy(policy, PROBLEMS)


def test_samples_may_outnumber_the_batch():
    policy = right_when(lambda q: True, lambda q: 3)
    evaluation = evaluate_policy(policy, PROBLEMS, samples=5, batch=2)
    assert policy.largest == 2
    assert [t.samples_correct for t in evaluation.transcripts] == [3] * 10
    assert {len(t.samples) for t in evaluation.transcripts} == {5}
