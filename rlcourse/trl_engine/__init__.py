"""The same recipe, trained by TRL: several GPUs, several machines, vLLM.

It has run on one GPU and never on several: course/scaling.md says what has.

``rlcourse train RECIPE --engine trl``, in one process or under ``accelerate launch``. The task, the
prompts and their order, the rewards, the sampling settings, the loss, the optimizer and its
learning rate are ours; `settings` says which field of a recipe becomes which argument of TRL's.
Methods that sample can be trained, because writing completions is what needs several GPUs.

- `settings`: a recipe as arguments of a TRL trainer, or one sentence on what TRL cannot do.
- `data`, `rewards`: problems and reward functions in the form in which TRL takes them.
- `trainers`: TRL's trainers with our prompts, learning rate and weight decay.
- `progress`: metrics, checkpoints and stops, step by step.
- `processes`: several processes that fail with one voice.
- `run`: from start to report; rank zero writes.

TRL and accelerate are an extra of the package, and are imported when a run starts.
"""

from rlcourse.on_first_use import on_first_use
from rlcourse.trl_engine.directory import require_local

__all__ = ["require_local", "train"]
__getattr__ = on_first_use(__name__, {"train": ".run"})
