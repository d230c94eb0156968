"""Training in environments: what is read, what is learned from, and that scoring is sampling."""

import pytest
import torch

from rlcourse.algorithms import action_mask, reverse_kl_advantages, rollout_env
from rlcourse.errors import UserError
from rlcourse.policy import Policy, Speaker
from rlcourse.tasks import CalculatorEnvironment
from rlcourse.tasks.calculator import large_problems, tool_demonstrations
from rlcourse.training.episodes import (
    evaluate_episodes,
    imitate_episodes,
    packed_episodes,
    train_episodes,
)


@pytest.fixture(scope="module")
def policy():
    return Policy.load("tiny", device="cpu")


def played(policy, n=6, seed=0):
    speaker = Speaker(policy, max_tokens=6, generator=torch.Generator().manual_seed(seed))
    environments = [CalculatorEnvironment(problem) for problem in large_problems(n, seed)]
    return rollout_env(speaker, environments, max_turns=3)


def test_scoring_an_episode_gives_what_its_tokens_were_drawn_at(policy):
    rollouts, mask = packed_episodes(policy, played(policy)[0])
    with torch.no_grad():
        scored = policy.logprobs(rollouts)
    assert mask.sum() > 30
    torch.testing.assert_close(scored[mask], rollouts.old_logprobs[mask], rtol=1e-3, atol=1e-3)
    assert not rollouts.old_logprobs[~mask].any()


def test_a_demonstration_is_the_episode_that_a_policy_would_have_played(policy):
    speaker = Speaker(policy)
    shown = tool_demonstrations(large_problems(1, 0), 0)[0]
    episode = speaker.demonstrated(CalculatorEnvironment(shown.problem), shown.turns)
    written = [speaker.text(ids) for author, ids, _ in episode if author == "policy"]
    assert written == list(shown.turns)
    assert all(ids[-1] in policy.eos_ids for author, ids, _ in episode if author == "policy")
    assert action_mask([episode]).sum() == sum(len(speaker.encode(t)) + 1 for t in shown.turns)


def test_observations_stand_in_the_chat_template(policy):
    ids = Speaker(policy).observation("391")
    assert policy.tokenizer.decode(ids) == "<|user|>391<|assistant|>"


def test_an_observation_follows_the_turns_end_in_another_template(policy, monkeypatch):
    """In ChatML the newline after a turn's end is the template's, and the end the policy's."""
    template = (
        "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}</s>\n{% endfor %}<assistant>"
    )
    monkeypatch.setattr(policy.tokenizer, "chat_template", template)
    speaker = Speaker(policy)
    assert (speaker.before, speaker.after) == ("\n<user>", "</s>\n<assistant>")


def test_a_mask_of_another_shape_is_refused(policy):
    with pytest.raises(UserError, match="one entry for each token"):
        packed_episodes(policy, played(policy)[0], lambda episodes: action_mask(episodes)[:, 1:])


def test_imitation_and_both_kinds_of_advantages_move_the_policy(policy):
    """Runs the loop; what it learns is the lesson's to show."""
    warm, some = policy.clone(), large_problems(12, 0)
    imitate_episodes(warm, tool_demonstrations(some, 0), steps=2, rows=6)

    def taught(rollouts, rewards, mask):
        with torch.no_grad():
            return reverse_kl_advantages(rollouts.old_logprobs, policy.logprobs(rollouts), mask)

    for options in ({}, {"advantages_of": taught}):
        student = warm.clone()
        small = {"steps": 2, "prompts_per_step": 3, "group_size": 2, "max_turns": 2}
        metrics = list(train_episodes(student, some, **small, **options))
        assert [m["step"] for m in metrics] == [1, 2] and metrics[-1]["episodes"] == 12
        assert all(torch.isfinite(p).all() for p in student.parameters())
    moved = [(a != b).any() for a, b in zip(student.parameters(), warm.parameters(), strict=True)]
    assert any(moved)
    assert 0 <= evaluate_episodes(student, some[:3], max_turns=2) <= 1


def test_a_full_context_is_a_sentence(policy):
    with pytest.raises(UserError, match="reads at most 512"):
        Speaker(policy).write([[5] * 500])
