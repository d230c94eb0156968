"""TRL's trainers, changed in four ways: prompts, learning rate, weight decay, no telemetry.

The methods overridden here are TRL's and Transformers' own hooks or, where there is none, private
methods of TRL 1.16; the version is pinned, and tests compare what comes out with the local engine.
"""

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from rlcourse.errors import UserError, first_line
from rlcourse.installed import needing
from rlcourse.policy import Policy
from rlcourse.policy.loading import no_progress_bars
from rlcourse.training.networks.optimizer import learning_rate
from rlcourse.training.recipes.settings import Recipe
from rlcourse.trl_engine.data import question_rows, unpadded
from rlcourse.trl_engine.job import Job
from rlcourse.trl_engine.rewards import reward_functions
from rlcourse.trl_engine.settings import (
    config_class,
    housekeeping,
    trl_arguments,
)


def make_trainer(job: Job) -> Any:
    """TRL's trainer of this job's recipe.

    Every process makes its own, from the same files.

    Raises:
        UserError: TRL refuses the settings, or a package that they need is missing.
    """
    import trl
    from datasets import Dataset
    from transformers import PrinterCallback

    recipe = job.recipe
    policy = job.load(job.start, "cpu")  # TRL puts it where it belongs
    require_no_sense_of_place(policy)
    rewards, weights = reward_functions(recipe, job.task)
    model = end_only(policy)
    switch_off_dropout(model)
    use_cpu = job.processes.use_cpu or recipe.device == "cpu"
    arguments = housekeeping(job.out / "checkpoints", use_cpu)
    arguments |= trl_arguments(recipe, job.processes.count, weights)
    base = getattr(trl, f"{job.method.trl.trainer}Trainer")
    try:
        trainer = _like_ours(base, policy, recipe, job.batches.updates)(
            model=model,
            args=config_class(recipe)(**arguments | job.settings),
            train_dataset=Dataset.from_list(question_rows(policy, job.task, recipe)),
            processing_class=copy.deepcopy(policy.tokenizer),  # TRL may give it a padding token
            reward_funcs=rewards,
            peft_config=lora_config(recipe) if recipe.lora else None,
        )
    except (TypeError, ValueError, ImportError, OSError, RuntimeError) as error:
        if not job.settings:
            raise  # nothing that the user could fix
        raise UserError(f"TRL cannot start with these settings: {first_line(error)}") from error
    trainer.remove_callback(PrinterCallback)
    return trainer


def require_no_sense_of_place(policy: Policy) -> None:
    """Raise ``UserError`` for a model with learned positions, such as GPT-2.

    TRL scores left-padded prompts without saying where they begin.
    """
    tables = ("wpe", "embed_positions", "position_embeddings")
    if any(name.endswith(tables) for name, _ in policy.model.named_modules()):
        raise UserError(
            f"{type(policy.model).__name__} has learned positions, which TRL does not pass when it "
            "scores padded prompts: leave out --engine trl, or take one with rotary positions"
        )


def end_only(policy: Policy) -> nn.Module:
    """The policy's model without habits of generation, all but its end tokens.

    A chat model's own settings (penalties, forced tokens) would reach TRL's ``generate``; our
    sampler has none.
    """
    from transformers import GenerationConfig

    policy.model.generation_config = GenerationConfig(
        eos_token_id=list(policy.eos_ids), pad_token_id=policy.pad_id
    )
    return policy.model


def lora_config(recipe: Recipe):
    """The recipe's adapters as PEFT's config. Raises ``UserError`` without PEFT."""
    with needing("lora", "training adapters"):
        from peft import LoraConfig
    rank, alpha, targets = (recipe.lora[key] for key in ("rank", "alpha", "targets"))
    return LoraConfig(r=rank, lora_alpha=alpha, target_modules=targets, task_type="CAUSAL_LM")


@contextmanager
def quiet() -> Iterator[None]:
    """One progress bar of ours instead of one for each file, and no telemetry for TRL."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    with no_progress_bars(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning)
        logging.set_verbosity_error()
        try:
            yield
        finally:
            logging.set_verbosity(level)


def _like_ours(base: Any, policy, recipe: Recipe, updates: int) -> type:
    """The trainer `base` with this recipe's prompts, learning rate and weight decay."""

    class Trainer(base):
        lr_scheduler: Any

        def create_scheduler(self, num_training_steps, optimizer=None):
            """The local engine's learning rate, which all updates of a step share."""
            if self.lr_scheduler is None:
                self.lr_scheduler = LambdaLR(
                    optimizer or self.optimizer,
                    lambda update: learning_rate(recipe, update // updates) / recipe.lr,
                )
            return self.lr_scheduler

        def get_decay_parameter_names(self, model):
            """All of them; Transformers would leave out biases and norms."""
            return [name for name, _ in model.named_parameters()]

        def _tokenize_prompts(self, prompts):
            """The prompts' tokens as `Policy` encodes them; no images, no further fields."""
            return unpadded(*policy.encode_prompts(prompts)), None, {}

        def _send_telemetry(self):
            """No telemetry."""

        def create_model_card(self, *unused, **also_unused):
            """The report says it."""

    Trainer.__name__ = Trainer.__qualname__ = base.__name__
    return Trainer


def switch_off_dropout(model: nn.Module) -> None:
    """No dropout anywhere, as in the local engine's eval mode.

    TRL's ``disable_dropout`` reaches ``nn.Dropout`` only; attention keeps its own as a number.
    """
    for module in model.modules():
        for name, value in vars(module).items():
            if isinstance(value, float) and ("dropout" in name or name.endswith("pdrop")):
                setattr(module, name, 0.0)
        if isinstance(module, nn.Dropout):
            module.p = 0.0
