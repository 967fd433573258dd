"""Reads the spaces in a model's file as data: no function that the file names is called.

A pickle says which functions to call with which arguments. The trainer reads an opponent's file as
soon as the user has named the file. Even calls of numpy's functions would be unsafe: with a file's
arguments, they could read any memory. So calls are only recorded, in a tree of plain values and
`_Noted` calls. The recorded spaces, arrays and numbers are then checked part by part, and gymnasium
and numpy get checked values.

Rule: only single values are hashed. Python computes the hash of a tuple from its parts, without a
limit, so a few bytes can describe a tuple whose hash takes years or whose depth crashes Python.
"""

from __future__ import annotations

import pickle
import pickletools
from collections.abc import Callable, Mapping
from math import prod
from typing import Any, Final, TypeVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sc2pool.foreign import shown

_MOST_OPCODES: Final = 200_000
"""The largest number of opcodes in a pickle; a space of several parts needs some thousand."""
_MOST_SPACES: Final = 2_000
"""The largest number of a space's parts; a part that the pickle uses twice counts twice."""
_MOST_AXES: Final = 32
"""The largest number of an array's axes, as in NumPy 1."""
_TYPES: Final[Mapping[str, np.dtype[Any]]] = {
    f"{kind}{size}": np.dtype(f"<{kind}{size}")
    for kind, sizes in {"i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8)}.items()
    for size in sizes
}
"""A dict from the name of a number type in a pickle to the type."""
_MARK: Final = object()
_Container = TypeVar("_Container", list[Any], set[Any], dict[Any, Any])


class _Noted:
    """A recorded call of a function; the pickle would set `state` and `items` on its result."""

    def __init__(self, function: Any, arguments: Any) -> None:
        match function:
            case (str(module), str(name)):
                self.module, self.name = module, name
            case _:
                raise pickle.UnpicklingError(f"expected a function, got {shown(function)}")
        self.arguments = arguments
        self.state: Any = None
        self.items: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"{self.module}.{self.name}"


def load_space(pickled: bytes) -> spaces.Space[Any]:
    """The space in a pickle; UnpicklingError for other objects. Damage may raise any error."""
    return _Spaces().space_of(_Machine().run(pickled))


class _Machine:
    """Executes the opcodes that make values; records the calls of functions."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self, pickled: bytes) -> Any:
        """The value that the pickle leaves on the stack."""
        for count, (opcode, argument, _) in enumerate(pickletools.genops(pickled)):
            if count > _MOST_OPCODES:
                raise pickle.UnpicklingError("it is longer than a space's")
            if opcode.name in _CONSTANTS:
                self.stack.append(_CONSTANTS[opcode.name])
            elif opcode.name in _LITERALS:
                self.stack.append(argument)
            elif opcode.name in _ACTIONS:
                _ACTIONS[opcode.name](self, argument)
            elif opcode.name not in _IGNORED:
                raise pickle.UnpicklingError(f"a space's pickle has no opcode {opcode.name}")
        return self.stack.pop()

    def combine(self, count: int) -> None:
        """Replace the last `count` values by a tuple of them."""
        self.stack[-count:] = [tuple(self.stack[-count:])]

    def marked(self) -> list[Any]:
        """Pop the values since the last mark, and the mark; return the values."""
        at = len(self.stack) - 1 - self.stack[::-1].index(_MARK)
        _, *parts = self.stack[at:]
        del self.stack[at:]
        return parts

    def extend(self, parts: list[Any]) -> None:
        """Add the values in `parts` to the list on top of the stack."""
        self._last(list).extend(parts)

    def add(self, parts: list[Any]) -> None:
        """Add the values in `parts` to the set on top of the stack."""
        self._last(set).update(map(_single, parts))

    def set_items(self, parts: list[Any]) -> None:
        """Add the alternating keys and values in `parts` to the dict on top of the stack."""
        last = self.stack[-1]
        held = last.items if isinstance(last, _Noted) else self._last(dict)
        held.update(zip(map(_single, parts[::2]), parts[1::2], strict=True))

    def _last(self, kind: type[_Container]) -> _Container:
        last = self.stack[-1]
        if not isinstance(last, kind):
            raise pickle.UnpicklingError(f"expected a {kind.__name__}, got {shown(last)}")
        return last

    def remember(self, index: int | None) -> None:
        """Store the last value in the memo under `index`; None for the next free index."""
        self.memo[len(self.memo) if index is None else index] = self.stack[-1]

    def global_(self, argument: str) -> None:
        """Push a function, which is given as "module name"."""
        module, _, name = argument.partition(" ")
        self.stack.append((module, name))

    def call(self, _: Any) -> None:
        """Record a call."""
        arguments, function = self.stack.pop(), self.stack.pop()
        self.stack.append(_Noted(function, arguments))

    def build(self, _: Any) -> None:
        """Record the state of the object that a call would have made."""
        state = self.stack.pop()
        self.stack[-1].state = state


def _single(value: Any) -> Any:
    """Return a value that will be hashed; UnpicklingError if it is not a single value."""
    if not isinstance(value, str | bytes | int | float | None):
        raise pickle.UnpicklingError(f"expected a single value, got {shown(value)}")
    return value


_CONSTANTS: Final = {
    "NONE": None,
    "NEWTRUE": True,
    "NEWFALSE": False,
    "MARK": _MARK,
    "EMPTY_TUPLE": (),
}
_LITERALS: Final = frozenset(
    "BININT BININT1 BININT2 LONG1 LONG4 BINFLOAT SHORT_BINBYTES BINBYTES BINBYTES8 BYTEARRAY8 "
    "SHORT_BINUNICODE BINUNICODE BINUNICODE8".split()
)
_IGNORED: Final = frozenset({"PROTO", "FRAME", "STOP"})
_ACTIONS: Final[Mapping[str, Callable[[_Machine, Any], None]]] = {
    "EMPTY_LIST": lambda machine, _: machine.stack.append([]),
    "EMPTY_DICT": lambda machine, _: machine.stack.append({}),
    "EMPTY_SET": lambda machine, _: machine.stack.append(set()),
    "TUPLE": lambda machine, _: machine.stack.append(tuple(machine.marked())),
    "TUPLE1": lambda machine, _: machine.combine(1),
    "TUPLE2": lambda machine, _: machine.combine(2),
    "TUPLE3": lambda machine, _: machine.combine(3),
    "FROZENSET": lambda machine, _: machine.stack.append(frozenset(map(_single, machine.marked()))),
    "APPENDS": lambda machine, _: machine.extend(machine.marked()),
    "ADDITEMS": lambda machine, _: machine.add(machine.marked()),
    "SETITEMS": lambda machine, _: machine.set_items(machine.marked()),
    "APPEND": lambda machine, _: machine.extend([machine.stack.pop()]),
    "SETITEM": lambda machine, _: machine.set_items([machine.stack.pop(-2), machine.stack.pop()]),
    "MEMOIZE": _Machine.remember,
    "BINPUT": _Machine.remember,
    "LONG_BINPUT": _Machine.remember,
    "BINGET": lambda machine, index: machine.stack.append(machine.memo[index]),
    "LONG_BINGET": lambda machine, index: machine.stack.append(machine.memo[index]),
    "GLOBAL": _Machine.global_,
    "STACK_GLOBAL": lambda machine, _: machine.combine(2),
    "REDUCE": _Machine.call,
    "NEWOBJ": _Machine.call,
    "BUILD": _Machine.build,
}


class _Spaces:
    """Makes spaces from recorded calls."""

    def __init__(self) -> None:
        self._made = 0

    def space_of(self, noted: Any) -> spaces.Space[Any]:
        """The space of a recorded call."""
        if not isinstance(noted, _Noted):
            raise pickle.UnpicklingError(f"expected a space, got {type(noted).__name__}")
        make = _KINDS.get(noted.name)
        if make is None or not noted.module.startswith("gymnasium.spaces"):
            raise pickle.UnpicklingError(f"{shown(noted)} is no part of a space of gymnasium's")
        self._made += 1
        if self._made > _MOST_SPACES:
            raise pickle.UnpicklingError(f"it has more than {_MOST_SPACES:,} parts")
        return make(self, noted.state)

    def box(self, state: Any) -> spaces.Space[Any]:
        low, high = _array(state["low"]), _array(state["high"])
        return spaces.Box(low, high, low.shape, low.dtype.type)

    def discrete(self, state: Any) -> spaces.Space[Any]:
        return spaces.Discrete(_whole(state["n"]), start=_whole(state["start"]))

    def multi_discrete(self, state: Any) -> spaces.Space[Any]:
        nvec, start = _array(state["nvec"]), state.get("start")
        return spaces.MultiDiscrete(
            nvec, nvec.dtype.type, start=None if start is None else _array(start)
        )

    def multi_binary(self, state: Any) -> spaces.Space[Any]:
        n = state["n"]
        return spaces.MultiBinary(tuple(map(_whole, n)) if isinstance(n, tuple) else _whole(n))

    def text(self, state: Any) -> spaces.Space[Any]:
        letters = state["_char_str"]
        if not isinstance(letters, str):
            raise pickle.UnpicklingError(f"expected the letters of a text, got {shown(letters)}")
        least, most = _whole(state["min_length"]), _whole(state["max_length"])
        return spaces.Text(most, min_length=least, charset=letters)

    def dict(self, state: Any) -> spaces.Space[Any]:
        parts = state["spaces"]
        if isinstance(parts, _Noted):  # an OrderedDict
            parts = parts.items
        # Pass pairs, because Dict would sort the keys of a dict.
        return spaces.Dict([(name, self.space_of(part)) for name, part in parts.items()])

    def tuple(self, state: Any) -> spaces.Space[Any]:
        return spaces.Tuple([self.space_of(part) for part in state["spaces"]])

    def one_of(self, state: Any) -> spaces.Space[Any]:
        return spaces.OneOf([self.space_of(part) for part in state["spaces"]])

    def sequence(self, state: Any) -> spaces.Space[Any]:
        return spaces.Sequence(self.space_of(state["feature_space"]), stack=state["stack"] is True)

    def graph(self, state: Any) -> spaces.Space[Any]:
        node, edge = self.space_of(state["node_space"]), state["edge_space"]
        return spaces.Graph(node, None if edge is None else self.space_of(edge))


_KINDS: Final[Mapping[str, Callable[[_Spaces, Any], spaces.Space[Any]]]] = {
    "Box": _Spaces.box,
    "Discrete": _Spaces.discrete,
    "MultiDiscrete": _Spaces.multi_discrete,
    "MultiBinary": _Spaces.multi_binary,
    "Text": _Spaces.text,
    "Dict": _Spaces.dict,
    "Tuple": _Spaces.tuple,
    "OneOf": _Spaces.one_of,
    "Sequence": _Spaces.sequence,
    "Graph": _Spaces.graph,
}


def _array(noted: Any) -> NDArray[Any]:
    """The array of a recorded call: numbers of a known type, as many as the shape says."""
    match noted:
        case _Noted(name="_reconstruct", state=(_, shape, kind, fortran, content)):
            order = "F" if fortran else "C"
        case _Noted(name="_frombuffer", arguments=(content, kind, shape, order)):
            pass
        case _:
            raise pickle.UnpicklingError(f"expected an array, got {shown(noted)}")
    if not isinstance(shape, tuple) or len(shape) > _MOST_AXES or not all(map(_is_side, shape)):
        raise pickle.UnpicklingError(f"expected the shape of an array, got {shown(shape)}")
    array = _numbers(kind, content, prod(shape))
    return array.reshape(shape, order="F" if order == "F" else "C")


def _is_side(side: Any) -> bool:
    return type(side) is int and 0 <= side < 1 << 40


def _numbers(kind: Any, content: Any, count: int) -> NDArray[Any]:
    """An array of `count` numbers of the recorded type `kind`, read from bytes."""
    dtype = _type(kind)
    if not isinstance(content, bytes | bytearray) or len(content) != count * dtype.itemsize:
        raise pickle.UnpicklingError(f"expected {count} numbers, got {shown(content)}")
    return np.frombuffer(bytes(content), dtype)


def _whole(noted: Any) -> int:
    """The whole number of a value, which may be an int or a recorded numpy scalar."""
    match noted:
        case _Noted(name="scalar", arguments=(kind, content)):
            return int(_numbers(kind, content, 1)[0])
        case int():
            return noted
    raise pickle.UnpicklingError(f"expected a whole number, got {shown(noted)}")


def _type(noted: Any) -> np.dtype[Any]:
    """The recorded type of numbers. Only little-endian bytes are accepted."""
    match noted:
        case _Noted(name="dtype", arguments=(str(name), *_), state=(_, "<" | "|", *_)):
            if name in _TYPES:
                return _TYPES[name]
    raise pickle.UnpicklingError(f"expected the type of a number, got {shown(noted)}")
