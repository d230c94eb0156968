"""Models without a directory of their own: a GGUF file, or an adapter beside its base model."""

import json
import os
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from rlcourse.errors import UserError, first_line
from rlcourse.installed import needing, require

ADAPTER = "adapter_config.json"


def is_gguf(name: str | os.PathLike) -> bool:
    """Whether a policy's name is that of a GGUF file."""
    return str(name).endswith(".gguf")


def load_gguf(path: Path, dtype: torch.dtype) -> tuple[Any, Any]:
    """The model and the tokenizer, with its chat template, of a GGUF file.

    Weights that are stored in 4 to 8 bits are read into `dtype`; the model is an ordinary one, and
    is saved as such.

    Raises:
        UserError: there is no such file, it cannot be read, or the package gguf is not installed.
    """
    tokenizer = from_gguf(AutoTokenizer, path)
    read = from_gguf(AutoModelForCausalLM, path, dtype=dtype)
    config = read.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config  # its weights are no longer stored in few bits
    model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    model.load_state_dict(read.state_dict())
    model.generation_config = read.generation_config
    return model, tokenizer


def from_gguf(reader: Any, path: Path, **how) -> Any:
    """What one of transformers' classes reads from the file; fails as `load_gguf`."""
    if not path.is_file():
        raise UserError(f"There is no file {path}: check the path.")
    require("gguf", "gguf", "accelerate", what="reading a GGUF file")
    try:
        return reader.from_pretrained(path.parent, gguf_file=path.name, **how)
    except Exception as error:  # it fails in as many ways as a file can be damaged
        raise UserError(
            f"The file {path} cannot be read as a causal language model ({first_line(error)}): "
            "download it again, or choose one of a family that transformers converts."
        ) from error


def is_adapter(name: str | os.PathLike) -> bool:
    """Whether a policy's name is the directory of a LoRA adapter, as PEFT saves it."""
    directory = Path(name).expanduser()
    return (directory / ADAPTER).is_file() and not (directory / "config.json").exists()


def base_of(directory: str | os.PathLike) -> str:
    """The model that an adapter was trained on, as its configuration names it.

    A relative path is looked for from here, then from the adapter's directory upwards. What is not
    found is taken for a name on the hub.
    """
    directory = Path(directory).expanduser()
    try:
        name = json.loads((directory / ADAPTER).read_text("utf-8"))["base_model_name_or_path"]
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{directory / ADAPTER} cannot be read ({first_line(error)}).") from error
    if not isinstance(name, str) or not name:
        raise UserError(
            f"{directory / ADAPTER} does not say what it was trained on: write the model's name or "
            'directory into it, as "base_model_name_or_path".'
        )
    for parent in (Path(), *directory.absolute().parents, directory):
        if (parent / name).is_dir():
            return str((parent / name).absolute())
    return name


def put_adapter_on(model: Any, directory: str | os.PathLike, merged: bool) -> Any:
    """The model with the adapter of `directory` on its layers, or `merged` into their weights.

    Raises:
        UserError: PEFT is not installed, or the adapter does not fit the model.
    """
    with needing("lora", "reading an adapter"):
        from peft import PeftModel
    directory = Path(directory).expanduser()
    if not any(directory.glob("adapter_model.*")):
        raise UserError(f"{directory} has no adapter_model.safetensors: copy the whole adapter.")
    try:
        adapted = PeftModel.from_pretrained(model, str(directory), is_trainable=not merged)
    except (OSError, ValueError, KeyError, RuntimeError, TypeError) as error:
        raise UserError(
            f"The adapter {directory} does not fit its base model ({first_line(error)}): check "
            f'"base_model_name_or_path" in its {ADAPTER}.'
        ) from error
    return adapted.merge_and_unload().requires_grad_(True) if merged else adapted.get_base_model()
