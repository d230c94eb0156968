"""How many kernels a GPU would be asked for, counted on the CPU."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter


class Launches(TorchDispatchMode):
    """Counts operators that make something new or write, in ``n``. Use it in a `with` block.

    Inside of ``as_one(function)`` they count as one: what is one kernel there may be several here.
    """

    def __init__(self):
        super().__init__()
        self.n = 0
        self.together = False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.n += (
            not self.together
            and "empty" not in str(function)
            and _works(function, (args, kwargs), result)
        )
        return result

    def as_one(self, function):
        """`function`, counted once."""

        def called(*args, **kwargs):
            self.n += 1
            self.together = True
            try:
                return function(*args, **kwargs)
            finally:
                self.together = False

        return called


def _works(function, given, result) -> bool:
    known = {x.untyped_storage()._cdata for x in tree_iter(given) if isinstance(x, torch.Tensor)}
    made = [x for x in tree_iter(result) if isinstance(x, torch.Tensor)]
    fresh = any(x.untyped_storage()._cdata not in known for x in made)
    return fresh or any(a.alias_info and a.alias_info.is_write for a in function._schema.arguments)
