"""What a run ran on, for ``result.json`` and the report."""

import os
import platform
import subprocess
from importlib.metadata import version

import torch

from rlcourse import __version__


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide what a run computes."""
    packages = {name: version(name) for name in ("torch", "transformers")}
    return {"python": platform.python_version(), "rlcourse": __version__} | packages


def hardware(device: torch.device) -> dict[str, str | int]:
    """System, processor, threads, and the GPU if one was used."""
    facts: dict[str, str | int] = {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
        "device": str(device),
    }
    if torch.device(device).type == "cuda":
        gpu = torch.cuda.get_device_properties(device)
        facts["gpu"] = f"{gpu.name}, {gpu.total_memory / 2**30:.0f} GiB"
        facts["peak_gpu_memory"] = f"{torch.cuda.max_memory_allocated(device) / 2**30:.1f} GiB"
    return facts


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that a device or the machine has no memory left."""
    texts = ("out of memory", "can't allocate memory", "STATUS_ALLOC_FAILED")  # MPS, CPU, cuBLAS
    return isinstance(error, torch.OutOfMemoryError) or any(t in str(error) for t in texts)


def unusable_gpu() -> str | None:
    """Why PyTorch cannot use the NVIDIA GPU that this machine has; None if it can, or has none."""
    if torch.cuda.is_available() or not (names := nvidia_gpus()):
        return None
    if torch.version.cuda is None:
        reason = "this PyTorch was built without CUDA: install one that was built with it"
    else:
        reason = f"its driver does not work with CUDA {torch.version.cuda}: update the driver"
    return f"PyTorch cannot use the {names[0]} of this machine, because {reason}"


def nvidia_gpus() -> list[str]:
    """Names of the NVIDIA GPUs that the driver knows, whether or not PyTorch can use them."""
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return found.stdout.split("\n")[:-1] if found.returncode == 0 else []
