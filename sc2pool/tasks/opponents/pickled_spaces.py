"""Spaces out of the file of a model: data, which runs no code of the file's.

A pickle may name any function for unpickling to call, and the trainer reads the files of opponents
as soon as it is given their names. So only what gymnasium's own spaces consist of is called.
"""

from __future__ import annotations

import io
import pickle
from typing import Any, Final

from gymnasium import spaces

_NUMPY: Final = frozenset(
    "dtype ndarray scalar _frombuffer _reconstruct SeedSequence __pyx_unpickle_SeedSequence "
    "__generator_ctor __bit_generator_ctor __randomstate_ctor "
    "Generator RandomState PCG64 PCG64DXSM MT19937 Philox SFC64".split()
)
"""What arrays, their types and random generators are made of, in NumPy 1 and 2."""
_OTHERS: Final = frozenset(
    {("collections", "OrderedDict"), ("_codecs", "encode")}
    | {("builtins", name) for name in ("set", "frozenset", "complex", "bytearray")}
)


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        of_numpy = module.partition(".")[0] == "numpy" and name in _NUMPY
        if of_numpy or (module, name) in _OTHERS:
            return super().find_class(module, name)
        if module.startswith("gymnasium.spaces"):
            found = super().find_class(module, name)
            if isinstance(found, type) and issubclass(found, spaces.Space):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is no part of a space of gymnasium's")


def load_space(pickled: bytes) -> spaces.Space[Any]:
    """The space in this pickle.

    Raises:
        UnpicklingError: it is no space, or would call what gymnasium's spaces have no need of.
        Exception: the pickle is damaged; which exception, pickle does not say.
    """
    space = _Unpickler(io.BytesIO(pickled)).load()
    if not isinstance(space, spaces.Space):
        raise pickle.UnpicklingError(f"expected a space, got {type(space).__name__}")
    return space
