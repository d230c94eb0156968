"""What all parts of a run need to know."""

from dataclasses import dataclass
from pathlib import Path

from rlcourse.policy import Policy
from rlcourse.tasks import Task
from rlcourse.training.recipes.methods import Method
from rlcourse.training.recipes.settings import Recipe
from rlcourse.trl_engine.processes import Processes
from rlcourse.trl_engine.settings import Batches


@dataclass(frozen=True)
class Job:
    """A recipe, a place to keep its run in, and the processes that train it."""

    recipe: Recipe
    settings: dict  # of TRL's, from the command line
    out: Path
    task: Task
    processes: Processes
    progress: bool

    @property
    def method(self) -> Method:
        """The local engine's row of this algorithm."""
        return self.recipe.method

    @property
    def batches(self) -> Batches:
        """How a step is divided among the processes."""
        return Batches.of(self.recipe, self.processes.count)

    @property
    def start(self) -> str:
        """Where the starting weights are: a name or a directory that all processes can read."""
        recipe = self.recipe
        return str(self.out / "warm_start" / "policy") if recipe.warm_start else recipe.policy

    def load(self, place: str | Path, device: str | None) -> Policy:
        """A policy from its files. What adapters freeze may be in the recipe's dtype."""
        from transformers.integrations.deepspeed import unset_hf_deepspeed_config

        unset_hf_deepspeed_config()  # under ZeRO-3 Transformers would load a share of it only
        policy = Policy.load(place, device, self.recipe.dtype if self.recipe.lora else None)
        policy.template = self.recipe.template
        return policy

    def last_checkpoint(self) -> Path | None:
        """The newest complete checkpoint: TRL writes the trainer's state last."""
        saved = (self.out / "checkpoints").glob("checkpoint-*/trainer_state.json")
        return max((path.parent for path in saved), key=updates_of, default=None)


def updates_of(checkpoint: Path) -> int:
    """Optimizer steps before a checkpoint of TRL's, from its name."""
    return int(checkpoint.name.removeprefix("checkpoint-"))
