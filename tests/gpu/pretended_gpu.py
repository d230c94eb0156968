"""A pretended NVIDIA GPU in this process: ``import pretended_gpu; pretended_gpu.install()``.

``install`` compiles pretended_gpu.cpp, which says what it is, loads it, and lets ``torch.cuda``
answer as if the device were there. It has to come before torch is imported, which looks for devices
once, and cannot be undone: tests that need it run in processes of their own, see test_on_a_gpu.py.

    with counted() as found:
        ...
    found.waits      # Counter of "what at file:line", the nearest line of rlcourse or of the test
    found.operators  # how many; about the kernels that a GPU would be asked for
"""

import collections
import ctypes
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import types
from contextlib import contextmanager
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".cpp")
ROOT = SOURCE.parents[2]
SAME_DRAWS = True  # as the CPU
ROUNDING = 1e-6  # by which it may differ from the CPU: in the order of sums
waits: collections.Counter = collections.Counter()
gpu: ctypes.CDLL


def compiler() -> str | None:
    """The C++ compiler of this machine, or None."""
    return next(filter(None, map(shutil.which, (os.environ.get("CXX", "g++"), "clang++"))), None)


def folder() -> Path:
    """Where compiled libraries are kept; only this user may write there."""
    return Path(tempfile.gettempdir()) / f"rlcourse-pretended-gpu-{os.getuid()}"


def build() -> Path:
    """The compiled library, made once for each version of torch and of the source."""
    made_of = f"{version('torch')} {sys.platform}".encode() + SOURCE.read_bytes()
    kept = folder()
    library = kept / f"{sha256(made_of).hexdigest()[:16]}.so"
    if library.exists():
        return library
    kept.mkdir(mode=0o700, exist_ok=True)
    if kept.stat().st_uid != os.getuid():
        raise RuntimeError(f"{kept} belongs to somebody else: remove it")
    place = Path(find_spec("torch").origin).parent
    include = [f"-I{place / 'include' / part}" for part in ("", "torch/csrc/api/include")]
    libraries = [f"-L{place / 'lib'}", "-lc10", "-ltorch_cpu"]  # install says where they are
    with tempfile.TemporaryDirectory(dir=kept) as scratch:
        made = Path(scratch) / "gpu.so"
        options = ["-O0", "-std=c++20", "-w", "-shared", "-fPIC"]
        command = [compiler(), *options, *include, SOURCE, "-o", made, *libraries]
        subprocess.run([str(part) for part in command], check=True)
        made.rename(library)
    return library


@contextmanager
def counted():
    """Waits and operators inside of the block, and the most bytes that were allocated."""
    before, started = waits.copy(), gpu.gpu_operators()
    gpu.gpu_reset_peak()
    found = types.SimpleNamespace()
    yield found
    found.waits = waits - before
    found.operators = gpu.gpu_operators() - started
    found.peak = gpu.gpu_peak()


def set_capacity(n_bytes: float) -> None:
    """How much memory the GPU has; more is out of memory."""
    gpu.gpu_set_capacity(int(n_bytes))


def allocated() -> int:
    """Bytes in use."""
    return gpu.gpu_allocated()


def install() -> None:
    """Make ``device("cuda")`` work in this process, in which nobody has imported torch yet."""
    global gpu
    assert "torch" not in sys.modules, "torch is imported, and has looked for devices"
    # The library may have been built beside another copy of the same torch: its own come first.
    own = Path(find_spec("torch").origin).parent / "lib"
    for name in ("libc10.so", "libtorch_cpu.so"):
        ctypes.CDLL(str(own / name), mode=ctypes.RTLD_GLOBAL)
    gpu = ctypes.CDLL(str(build()), mode=ctypes.RTLD_GLOBAL)
    for name in ("gpu_operators", "gpu_allocated", "gpu_peak"):
        getattr(gpu, name).restype = ctypes.c_int64
    gpu.gpu_set_capacity.argtypes = [ctypes.c_int64]
    for name in unchecked_operators():
        gpu.gpu_lenient(name.encode())
    install.listener = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(_on_wait)  # kept alive
    gpu.gpu_on_wait(install.listener)
    _answer_as_cuda()


def unchecked_operators() -> list[str]:
    """Operators that leave the check of devices to TensorIterator, by their own declarations."""
    import torchgen

    place = Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
    entries = re.split(r"^- func: ", place.read_text(), flags=re.M)[1:]
    unchecked = (e for e in entries if re.search(r"^  device_check: NoCheck", e, re.M))
    return [f"aten::{entry.partition('(')[0]}" for entry in unchecked]


def _on_wait(what: bytes) -> None:
    waits[f"{what.decode()} at {_where()}"] += 1


def _where() -> str:
    """The nearest line that is ours."""
    frame = sys._getframe(2)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        ours = path.is_relative_to(ROOT) and "site-packages" not in path.parts
        if ours and path != Path(__file__):
            return f"{path.relative_to(ROOT)}:{frame.f_lineno}"
        frame = frame.f_back
    return "?"


def _answer_as_cuda() -> None:
    """What ``torch.cuda`` says of the device, and what C++ would hold in a build with CUDA."""
    import torch

    generator = torch.Generator("cuda")
    name, memory = "pretended GPU", int(141e9)
    facts = types.SimpleNamespace(name=name, total_memory=memory, major=9, minor=0)
    answers = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "_lazy_init": lambda: None,
        "_lazy_call": lambda call, **_: call(),
        "get_device_properties": lambda device=None: facts,
        "get_device_name": lambda device=None: name,
        "get_device_capability": lambda device=None: (9, 0),
        "get_arch_list": lambda: ["sm_90"],
        "is_bf16_supported": lambda including_emulation=True: True,
        "memory_allocated": lambda device=None: gpu.gpu_allocated(),
        "max_memory_allocated": lambda device=None: gpu.gpu_peak(),
        "reset_peak_memory_stats": lambda device=None: gpu.gpu_reset_peak(),
        "empty_cache": lambda: None,
        "synchronize": lambda device=None: waits.update([f"synchronize at {_where()}"]),
        "manual_seed": lambda seed: generator.manual_seed(int(seed)) and None,
        "manual_seed_all": lambda seed: generator.manual_seed(int(seed)) and None,
        "get_rng_state": lambda device="cuda": generator.get_state(),
        "set_rng_state": lambda state, device="cuda": generator.set_state(state),
        "default_generators": (generator,),
        "is_current_stream_capturing": lambda: False,
    }
    for module in (torch.cuda, torch.cuda.random, torch.cuda.memory):
        for attribute, value in answers.items():
            if module is torch.cuda or hasattr(module, attribute):
                setattr(module, attribute, value)
    for attribute, value in {
        "_cuda_getDevice": lambda: 0,
        "_cuda_setDevice": lambda device: None,
        "_cuda_exchangeDevice": lambda device: 0,
        "_cuda_maybeExchangeDevice": lambda device: 0,
        "_cuda_isCurrentStreamCapturing": lambda: False,
        "_cuda_emptyCache": lambda: None,
        "_cuda_getCurrentRawStream": lambda device: 0,  # bitsandbytes' own, which PEFT imports
    }.items():
        setattr(torch._C, attribute, value)
    from simulated_graph import SimulatedGraph, simulated_capture

    @contextmanager
    def capture(graph):
        try:
            with simulated_capture(graph):
                yield
        except RuntimeError:
            for registered in graph.generators or [generator]:
                torch.ops.pretended.capture_failed(registered)
            raise

    torch.cuda.CUDAGraph, torch.cuda.graph = SimulatedGraph, capture
    torch.cuda.device = torch.cuda._DeviceGuard = _NoOtherDevice
    _copy_storages(torch)
    _refuse_its_generator_on_the_cpu(torch)


class _NoOtherDevice:
    """``torch.cuda.device``, where there is one."""

    def __init__(self, device):
        pass

    def __enter__(self):
        return 0

    def __exit__(self, *_):
        pass


def _copy_storages(torch) -> None:
    """A build without CUDA cannot make a storage there, as ``deepcopy`` does; tensors can."""
    storages = torch.storage._StorageBase
    ordinary = storages.clone

    def clone(self):
        if self.device.type == "cpu":
            return ordinary(self)
        data = torch.empty(0, dtype=torch.uint8, device=self.device).set_(self)
        return data.clone().untyped_storage()

    storages.clone = clone


def _refuse_its_generator_on_the_cpu(torch) -> None:
    """The device's generator is one of the CPU's, with which functions of the CPU would draw."""

    def checked(draw, *arguments, generator=None, device=None, **options):
        wanted = torch.device(device or "cpu").type
        if generator is not None and generator.device.type != wanted:
            raise RuntimeError(
                f"Expected a '{wanted}' device type for generator but found "
                f"'{generator.device.type}'"
            )
        return draw(*arguments, generator=generator, device=device, **options)

    for name in ("rand", "randn", "randint", "randperm"):
        setattr(torch, name, functools.partial(checked, getattr(torch, name)))
