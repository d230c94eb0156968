"""A CUDA graph without CUDA: the operators of one pass are noted and repeated on the same tensors.

What a capture cannot hold fails here too: a number that the host reads, a tensor that the host
makes anew for each pass, a branch on a value. As in a real capture nothing is computed: what the
pass has changed is put back.
"""

from contextlib import contextmanager

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

HOST_WAITS = ("_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim")


class SimulatedGraph:
    """Takes the place of ``torch.cuda.CUDAGraph``."""

    replays = 0  # of all graphs, for tests that ask whether there were any

    def __init__(self):
        self.calls: list = []
        self.generators: list[torch.Generator] = []

    def register_generator_state(self, generator: torch.Generator) -> None:
        self.generators.append(generator)

    def replay(self) -> None:
        SimulatedGraph.replays += 1
        for func, args, kwargs, result in self.calls:
            again = func(*args, **kwargs)
            if all(returned.alias_info is None for returned in func._schema.returns):
                for old, new in zip(tree_leaves(result), tree_leaves(again), strict=True):
                    if isinstance(old, torch.Tensor):
                        old.copy_(new)


@contextmanager
def simulated_capture(graph: SimulatedGraph):
    """Takes the place of ``torch.cuda.graph``."""
    states = [(generator, generator.get_state()) for generator in graph.generators]
    own = torch.get_rng_state()
    noting = _Noting(graph.calls)
    try:
        with noting:
            yield
    finally:
        for tensor, before in noting.changed:
            tensor.copy_(before)
        for generator, state in states:
            generator.set_state(state)
        torch.set_rng_state(own)


class _Noting(TorchDispatchMode):
    def __init__(self, calls: list):
        super().__init__()
        self.calls = calls
        self.changed: list = []
        self.made: set[int] = set()  # storages that the pass itself has made

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        if name in HOST_WAITS or _moves(name, args, kwargs) or _by_a_mask(name, args):
            raise RuntimeError(f"operation not permitted when stream is capturing: {name}")
        for argument, value in zip(func._schema.arguments, args, strict=False):
            if argument.alias_info is not None and argument.alias_info.is_write:
                self._note_change(value)
        result = func(*args, **kwargs)
        if all(returned.alias_info is None for returned in func._schema.returns):
            made = (x for x in tree_leaves(result) if isinstance(x, torch.Tensor))
            self.made |= {x.untyped_storage()._cdata for x in made}
        self.calls.append((func, args, kwargs, result))
        return result

    def _note_change(self, tensor: torch.Tensor) -> None:
        if tensor.untyped_storage()._cdata not in self.made:
            self.changed.insert(0, (tensor, tensor.clone()))  # the earliest is put back last


def _moves(name: str, args: tuple, kwargs: dict) -> bool:
    return name == "_to_copy" and kwargs.get("device") not in (None, args[0].device)


def _by_a_mask(name: str, args: tuple) -> bool:
    """Whether it counts the places where a mask is True."""
    if name not in ("index", "index_put_"):
        return False
    return any(index is not None and index.dtype == torch.bool for index in args[1])


def simulate(monkeypatch) -> None:
    """Let ``torch.cuda`` capture simulated graphs until the test has ended."""
    monkeypatch.setattr(torch.cuda, "CUDAGraph", SimulatedGraph)
    monkeypatch.setattr(torch.cuda, "graph", simulated_capture)
