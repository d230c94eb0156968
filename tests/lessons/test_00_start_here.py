"""Lesson 00: the wrong answer that it shows is recognized."""

from rlcourse import check


def share_of_positive(rewards):
    return (rewards > 0).to(rewards.dtype).mean()


def test_the_wrong_answer_of_the_lesson_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("RLCOURSE_HOME", str(tmp_path))
    for seed in range(3):
        result = check(share_of_positive, exercise="mean_reward", seed=seed)
        assert result.mistake == "the share of positive rewards"
        assert 0 < result.agreeing < result.cases, "it is right on rewards of 0 and 1"
        assert result.points == 0
