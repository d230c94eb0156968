"""What lesson 17 concludes, tried again on a seed that was not used to write it.

As in ``test_claims_of_methods.py``, on a larger task. The fourth column has what came out on seeds
3 and 4; in §3 how far entropy fell and how far it rose, each the mean of seeds 3 to 5.

| lesson | claim | control | seeds 3 and 4 | least |
|---|---|---|---|---|
| 17 §1 | for no larger gain a foreign style costs addition | a near one | .52 .48 | .10 |
| 17 §3 | entropy falls from the wide start, rises from the rare | the slope | .18 .25 | .05 |
| 17 §4 | pass@4 as the objective ends with a lower pass@1 | pass@1 | .14 .06 | .01 |
"""

from dataclasses import replace
from functools import partial
from random import Random

import pytest
import torch
from test_claims_of_methods import SEED, SMALL

from rlcourse import algorithms as A
from rlcourse.tasks import correctness_reward, load_task, word_problems
from rlcourse.training import evaluate_policy, load_recipe, train

pytestmark = [pytest.mark.weekly, pytest.mark.filterwarnings("ignore:step")]
TASK = load_task("word_problems", seed=0, train_size=4000, evaluation_size=900)
IMITATION = load_recipe("sft", seed=0, eval_problems=0, device="cpu")


@pytest.fixture(scope="module")
def start():
    return train(IMITATION, task=TASK, progress=False).policy


def operations(problem):
    return {sign for sign in "+-*/" if f" {sign} " in problem.answer}


def sampled(policy, problems):
    found = evaluate_policy(policy, problems, samples=4).sampled_accuracy.value
    print(f"{found:.2f}")
    return found


def test_a_foreign_style_costs_what_a_near_one_keeps(start):
    multiply = [p for p in TASK.train if "*" in operations(p)]
    foreign = [replace(p, answer="Answer:\n" + p.answer) for p in multiply]
    added = [p for p in TASK.evaluation if operations(p) == {"+"}][:48]
    trained = [p for p in TASK.evaluation if "*" in operations(p)][:48]
    found = {}
    for name, shown, steps in (("near", multiply, 12), ("foreign", foreign, 24)):
        recipe = IMITATION.but(prompts_per_step=32, steps=steps, lr=1e-3, seed=SEED)
        task = replace(TASK, train=multiply, demonstrations=shown)
        policy = train(recipe, policy=start, task=task, progress=False).policy
        found[name] = sampled(policy, trained), sampled(policy, added)
    assert found["foreign"][0] < found["near"][0] + 0.15  # it has not learned much more
    assert found["foreign"][1] < found["near"][1] - 0.10


def slope(policy, seed):
    """What the first batch says: the slope of the entropy on 64 questions."""
    torch.manual_seed(seed)
    problems = TASK.train[64 * seed : 64 * seed + 64]
    prompts = [policy.format_prompt(p.question) for p in problems]
    drawn = policy.sample(prompts, group_size=8, max_tokens=64)
    rewards = correctness_reward(
        policy.decode(drawn), [p.answer for p in problems for _ in range(8)]
    )
    with torch.no_grad():
        logprobs, entropies = policy.logprobs_and_entropy(drawn)
    advantages = A.leave_one_out_advantages(rewards.to(logprobs), 8)
    return A.entropy_drift(logprobs, entropies, advantages, drawn.mask).item()


def test_entropy_goes_the_way_its_slope_says(start):
    """The mean of three runs: one can go either way, as the lesson says."""
    adds = word_problems.Slop(add=1.0, stop=0.0, format=0.0, slip=0.0)
    draw, shown = Random(0), []
    for problem in TASK.train[:2000]:
        kind = word_problems.CLEAN if draw.random() < 0.05 else adds
        shown.append(replace(problem, answer=word_problems.sloppy_answer(problem, kind, draw)))
    rare = train(IMITATION, task=replace(TASK, demonstrations=shown), progress=False).policy
    for policy, steps, way in ((start, 24, -1), (rare, 10, 1)):
        assert all(way * slope(policy, seed) > 0 for seed in range(SEED, SEED + 3))
        rises = []
        for seed in range(SEED, SEED + 3):
            recipe = load_recipe("grpo", steps=steps, seed=seed, **SMALL)
            run = train(recipe.but(eval_problems=0, device="cpu"), policy=policy, task=TASK,
                        advantages=A.leave_one_out_advantages, progress=False)  # fmt: skip
            entropy = [m["entropy"] for m in run.metrics]
            rises.append(sum(entropy[-4:]) / sum(entropy[:4]) - 1)
        print(" ".join(f"{rise:+.2f}" for rise in rises))
        assert way * sum(rises) / 3 > 0.05


def test_pass_at_4_as_the_objective_is_slower(start):
    found = []
    for k in (1, 4):
        recipe = load_recipe("grpo", steps=24, seed=SEED, eval_problems=0, device="cpu", **SMALL)
        run = train(recipe, policy=start, task=TASK, progress=False,
                    advantages=partial(A.pass_at_k_advantages, k=k))  # fmt: skip
        found.append(sampled(run.policy, TASK.evaluation[:100]))
    assert found[1] < found[0] - 0.01
