"""One process of an ``accelerate launch``: what ``test_trl_processes.py`` starts.

    one_of_several.py same RECIPE OUT     completions of the local engine, rewards of digits
    one_of_several.py fails RECIPE OUT    process 1 meets an error in its second step

Each process leaves ``seen_RANK.json`` beside OUT: the prompts that it completed and the norm of its
weights after each update.
"""

import json
import os
import sys
from pathlib import Path

import trl
from engines import digits_reward, local_completions
from transformers import TrainerCallback

from rlcourse import trl_engine
from rlcourse.errors import UserError
from rlcourse.training import load_recipe
from rlcourse.training import run as local
from rlcourse.trl_engine import rewards, trainers

RANK = int(os.environ["RANK"])


class Weights(TrainerCallback):
    """Notes the weights after each update, exactly."""

    seen: list = []  # noqa: RUF012

    def on_step_end(self, args, state, control, model=None, **unused):
        self.seen.append([p.double().sum().item() for p in model.parameters()])


def main() -> None:
    """Train, with what `same` or `fails` puts in place."""
    what, path, out = sys.argv[1:]
    recipe = load_recipe(path)
    prompts = []
    generate = local_completions(recipe, local.task_of(recipe))

    def noted(self, prompt_ids, *unused):
        prompts.append(prompt_ids)
        return generate(self, prompt_ids)

    def failing(*arguments):
        if what == "fails" and RANK == 1 and len(prompts) == 2:
            raise UserError("the reward of process 1 broke")
        return digits_reward(*arguments)

    rewards.correctness_reward = failing
    trl.GRPOTrainer._generate_single_turn = noted
    make_trainer = trainers.make_trainer

    def with_weights(job):
        trainer = make_trainer(job)
        trainer.add_callback(Weights())
        return trainer

    trainers.make_trainer = with_weights
    run = trl_engine.train(recipe, out, progress=False)
    assert (run is None) == (RANK > 0)
    seen = {"prompts": prompts, "weights": Weights.seen}
    Path(f"{out}_seen_{RANK}.json").write_text(json.dumps(seen), encoding="utf-8")


if __name__ == "__main__":
    main()
