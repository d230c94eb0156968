"""The launch files of course/accelerate, read by accelerate's own parser."""

import os
from pathlib import Path
from unittest.mock import patch

import pytest

accelerate = pytest.importorskip("accelerate", reason="the extra `trl` is not installed")

from accelerate.commands.launch import _validate_launch_command, launch_command_parser  # noqa: E402
from accelerate.utils import FullyShardedDataParallelPlugin  # noqa: E402
from accelerate.utils.launch import prepare_multi_gpu_env  # noqa: E402

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "course" / "accelerate").glob("*.yaml"))
LAUNCH = ["--num_processes", "4", "-m", "rlcourse", "train", "grpo", "--engine", "trl"]


def parsed(path: Path):
    arguments = launch_command_parser().parse_args(["--config_file", str(path), *LAUNCH])
    return _validate_launch_command(arguments)[0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_accelerate_reads_the_file(path):
    arguments = parsed(path)
    kinds = {"ddp": "multi_gpu", "fsdp": "use_fsdp", "zero2": "use_deepspeed"}
    chosen = kinds.get(path.stem, "use_deepspeed")
    for kind in ("multi_gpu", "use_fsdp", "use_deepspeed"):
        assert bool(getattr(arguments, kind)) == (kind == chosen), kind
    assert arguments.num_processes == 4  # the command line goes before the file
    assert arguments.mixed_precision == "no"  # the recipe's dtype decides
    assert arguments.training_script == "rlcourse" and arguments.module


def test_there_is_a_file_for_each_way():
    assert [path.stem for path in FILES] == ["ddp", "fsdp", "zero2", "zero3"]


@pytest.mark.parametrize(("name", "stage"), [("zero2", 2), ("zero3", 3)])
def test_deepspeed_files_say_their_stage(name, stage):
    arguments = parsed(ROOT / "course" / "accelerate" / f"{name}.yaml")
    assert arguments.zero_stage == stage
    assert arguments.offload_optimizer_device == arguments.offload_param_device == "none"


def test_fsdp_saves_whole_weights():
    """What rank zero evaluates is read back from the files that training saved."""
    arguments = parsed(ROOT / "course" / "accelerate" / "fsdp.yaml")
    with patch.dict(os.environ, prepare_multi_gpu_env(arguments)):
        plugin = FullyShardedDataParallelPlugin()
    assert plugin.fsdp_version == 2
    assert "FULL_STATE_DICT" in str(plugin.state_dict_type)
    assert not plugin.cpu_ram_efficient_loading
