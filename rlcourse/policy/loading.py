"""Loading a model and its tokenizer, or saying in one sentence why that is not possible."""

import os
import re
from collections.abc import Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from textwrap import indent
from typing import Any

import torch
from huggingface_hub.errors import (
    GatedRepoError,
    HFValidationError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
)
from safetensors import SafetensorError
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as progress

from rlcourse import hub
from rlcourse.errors import UserError, first_line
from rlcourse.policy.decoding import require_cache, require_rows_of_their_own
from rlcourse.policy.other_files import (
    base_of,
    from_gguf,
    is_adapter,
    is_gguf,
    load_gguf,
    put_adapter_on,
)
from rlcourse.policy.prompts import format_prompt

TINY = Path(__file__).parent / "tiny"
SMALL = 2_000_000  # parameters
ALL_THREADS = torch.get_num_threads()


def load_model_and_tokenizer(
    name: str | os.PathLike,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
) -> tuple[nn.Module, object]:
    """The model, in eval mode on its device, and the tokenizer. See `Policy.load`."""
    chosen, dtype = choose_device(device), choose_dtype(dtype)
    if is_adapter(name):
        model, tokenizer = load_model_and_tokenizer(base_of(name), "cpu", dtype)
        model = put_adapter_on(model, name, merged=True)
        tokenizer = tokenizer_of(name)
    elif is_gguf(name):
        model, tokenizer = load_gguf(Path(name).expanduser(), dtype)
    else:
        model, tokenizer = _load_complete(name, dtype)
    require_cache(model)
    use_threads_for(model)
    if device is None and is_small(model):
        chosen = torch.device("cpu")
    try:
        model = model.to(chosen).eval()
    except torch.OutOfMemoryError as error:
        raise UserError(
            f"The model {name} does not fit on {chosen}: "
            'choose a smaller one, or load it with dtype="bfloat16".'
        ) from error
    require_rows_of_their_own(model)
    return model, tokenizer


def _load_complete(name: str | os.PathLike, dtype: torch.dtype) -> tuple[Any, object]:
    """A model with all its files in a directory or on the hub."""
    source = source_of(name)
    configuration(name)  # the first thing to fail, with the clearest message
    try:
        tokenizer = AutoTokenizer.from_pretrained(source)
        with no_progress_bars() if isinstance(source, Path) else nullcontext():
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                source, dtype=dtype, output_loading_info=True, ignore_mismatched_sizes=True
            )
            model, report = loaded
    except (OSError, ValueError, KeyError, RuntimeError, TypeError, SafetensorError) as error:
        raise UserError(why_not_loaded(source, error)) from error
    # Transformers would fill these in with random numbers, and the run would only look odd.
    wrong = sorted({*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])})
    if wrong:
        raise UserError(
            f"In the model {source}, {len(wrong)} weights are missing or of the wrong size "
            f"(the first is {wrong[0]}): download or save it again."
        )
    return model, tokenizer


def tokenizer_of(name: str | os.PathLike) -> Any:
    """The tokenizer of a policy, without its weights."""
    if is_adapter(name) and not (Path(name).expanduser() / "tokenizer_config.json").exists():
        return tokenizer_of(base_of(name))
    if is_gguf(name):
        return from_gguf(AutoTokenizer, Path(name).expanduser())
    source = Path(name).expanduser() if is_adapter(name) else source_of(name)
    try:
        if isinstance(source, str):
            hub.ask_once(source, "tokenizer_config.json")
        return AutoTokenizer.from_pretrained(source)
    except (OSError, ValueError, KeyError, RuntimeError, TypeError) as error:
        raise UserError(why_not_loaded(source, error)) from error


def question_as_read(name: str, system: str | None, template: Mapping) -> str:
    """A question as the policy `name` reads it, or why that is not known on this machine."""
    try:
        tokenizer = tokenizer_of(name)
    except UserError as error:
        return f"How a question is put to the policy is not known here. {error}"
    prompt = format_prompt(tokenizer, "QUESTION", system, template)
    return "A question, as the policy reads it:\n" + indent(prompt.rstrip(), "  ")


def source_of(name: str | os.PathLike) -> Path | str:
    """The directory of that name, or the name of a model on the hub."""
    source = TINY if str(name) == "tiny" else Path(name).expanduser()
    if source.is_dir():
        return source
    if source is TINY or looks_like_path(name):
        raise UserError(f"There is no model directory {source}: check the path.")
    return str(name)


def configuration(name: str | os.PathLike) -> Any:
    """The model's configuration, without its weights."""
    if is_adapter(name):
        return configuration(base_of(name))
    if is_gguf(name):
        return from_gguf(AutoConfig, Path(name).expanduser())
    source = source_of(name)
    try:
        if isinstance(source, str):
            hub.ask_once(source, "config.json")
        return AutoConfig.from_pretrained(source)
    except (OSError, ValueError, KeyError, RuntimeError, TypeError) as error:
        raise UserError(why_not_loaded(source, error)) from error


def use_threads_for(model: nn.Module) -> None:
    """Use one thread for a small model and all cores for a larger one.

    The matrices of the embedded model are too small to share: a second thread hardly helps on an
    idle machine, and on a busy one each operation waits for it. OMP_NUM_THREADS is respected.
    """
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1 if is_small(model) else ALL_THREADS)


def is_small(model: nn.Module) -> bool:
    """Whether a GPU, or a second thread, would wait more than it computes."""
    return sum(p.numel() for p in model.parameters()) < SMALL


@contextmanager
def no_progress_bars():
    """No progress bars, for files that load and save instantly."""
    shown = progress.is_progress_bar_enabled()
    progress.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            progress.enable_progress_bar()


def choose_device(device: str | torch.device | None) -> torch.device:
    """The device asked for, or else CUDA, MPS or the CPU. UserError if it does not work."""
    if device is None:
        if torch.cuda.is_available():
            require_kernels(torch.device("cuda"))
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        if chosen.type == "cuda":
            require_kernels(chosen)
        return torch.empty(0, device=chosen).device
    except (RuntimeError, AssertionError) as error:
        raise UserError(
            f"The device {str(device)!r} cannot be used on this machine: use 'cpu'."
        ) from error


def attend_to_any_length() -> None:
    """Leave cuDNN out of PyTorch's attention, for this process.

    On an H100 it comes first, and builds a plan for each new pair of lengths. Here nearly every
    batch has lengths of its own: a step of GRPO with Qwen2.5-0.5B's shape took 3.0 s with it and
    1.7 s without.
    """
    torch.backends.cuda.enable_cudnn_sdp(False)


def require_kernels(device: torch.device) -> None:
    """Raise ``UserError`` if this PyTorch was built for newer GPUs only."""
    built_for = [arch for arch in torch.cuda.get_arch_list() if re.fullmatch(r"sm_[0-9]+", arch)]
    if not built_for:
        return
    oldest = min(int(arch.removeprefix("sm_")) for arch in built_for)
    major, minor = torch.cuda.get_device_capability(device)
    if 10 * major + minor < oldest:
        raise UserError(
            f"This PyTorch has no kernels for {torch.cuda.get_device_name(device)}, whose compute "
            f"capability is {major}.{minor}: they begin at {oldest // 10}.{oldest % 10}. Take a "
            "newer GPU, install an older PyTorch, or use device 'cpu'."
        )


def choose_dtype(dtype: str | torch.dtype | None) -> torch.dtype:
    """A floating-point dtype from its name; float32 where none is given."""
    chosen: object = torch.float32 if dtype is None else dtype
    if isinstance(chosen, str):
        chosen = getattr(torch, chosen.removeprefix("torch."), None)
    if not isinstance(chosen, torch.dtype) or not chosen.is_floating_point:
        raise UserError(f"Unknown dtype {dtype!r}: use 'float32', 'bfloat16' or 'float16'.")
    return chosen


def looks_like_path(name: str | os.PathLike) -> bool:
    """A name on the hub is `model` or `owner/model`; anything else can only be a directory."""
    text = str(name)
    return not isinstance(name, str) or text.startswith((".", "/", "~")) or text.count("/") > 1


def why_not_loaded(source: str | Path, error: Exception) -> str:
    """One sentence on what went wrong and what to do about it."""
    if isinstance(source, Path):
        return (
            f"The directory {source} does not hold a complete Hugging Face causal language model "
            f"({first_line(error)}): download or save it again."
        )
    causes = tuple(map(type, chain_of(error)))
    if any(issubclass(cause, GatedRepoError) for cause in causes):
        return f"The model {source!r} has terms: accept them on its page and run `hf auth login`."
    if any(issubclass(cause, (RepositoryNotFoundError, HFValidationError)) for cause in causes):
        return (
            f"There is no model {source!r} on the Hugging Face hub: check the name, "
            "or run `hf auth login` if it is private."
        )
    if any(issubclass(cause, (LocalEntryNotFoundError, OfflineModeIsEnabled)) for cause in causes):
        return (
            f"The model {source!r} is not on this machine and the Hugging Face hub cannot be "
            "reached: check the network, or give a directory."
        )
    return (
        f"The model {source!r} cannot be loaded as a causal language model ({first_line(error)}): "
        "choose another."
    )


def chain_of(error: BaseException | None):
    """The error and what it came from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
