"""The layout of observations and actions in the shared memory of a queue pair.

The trainer and the worker compute the same layout from the same spaces. A space is flattened
recursively into *leaves* of fixed shape and dtype. The parts of a Dict are in the space's own
order, and the parts of a Tuple are in the order of their indices. A space with a Text, Sequence,
Graph or another part without a fixed layout has no leaves. The values of such a space are pickled
and sent outside the slot. If an env has several rows, each leaf holds the values of all the env's
rows, one after the other.

Offsets are multiples of 64 bytes, so that no two leaves share a cache line. A layout describes
memory but holds no memory. An env with several rows must have a fixed layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium import spaces

from sc2pool.errors import ConfigError

Array = np.ndarray[Any, np.dtype[Any]]
"""An array of any shape and dtype."""
Path = tuple[str | int, ...]

ALIGNMENT_BYTES = 64


@dataclass(frozen=True)
class Leaf:
    """One array of fixed shape and dtype inside an observation or an action.

    Attributes:
        path: the keys and indices that lead to the array in the space.
        shape: the shape of one row's value.
        offset_bytes: the offset of the array in a slot.
        rows: how many rows of an env the array holds.
    """

    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset_bytes: int
    is_discrete: bool = False
    rows: int = 1

    @property
    def whole_shape(self) -> tuple[int, ...]:
        """The shape of the whole leaf, which is `shape` with one row, else (rows, …)."""
        return self.shape if self.rows == 1 else (self.rows, *self.shape)

    @property
    def size_bytes(self) -> int:
        return int(np.prod(self.whole_shape, dtype=np.int64)) * self.dtype.itemsize

    def view(self, memory: memoryview) -> Array:
        """A view, with the shape `whole_shape`, of this leaf in a slot's memory."""
        return np.ndarray(self.whole_shape, self.dtype, memory, self.offset_bytes)

    def column(
        self, memory: memoryview, slots: int, slot_bytes: int, place_bytes: int | None = None
    ) -> Array:
        """A view of this leaf in all slots as an array (slots, …); slots are `slot_bytes` apart.

        If each slot has two places for the leaf, `place_bytes` apart, the array is (slots, 2, …).
        """
        view = self.view(memory)
        shape, strides = view.shape, view.strides
        if place_bytes is not None:
            shape, strides = (2, *shape), (place_bytes, *strides)
        shape, strides = (slots, *shape), (slot_bytes, *strides)
        return np.ndarray(shape, self.dtype, memory, self.offset_bytes, strides)

    def copied(self, array: Array) -> Any:
        """A copy of the leaf's value as envs return it: an int for Discrete, else an array."""
        return int(array) if self.is_discrete else np.array(array)


@dataclass(frozen=True)
class SpaceLayout:
    """The layout of one space; `leaves` is None if the space has no fixed layout."""

    space: spaces.Space[Any]
    leaves: tuple[Leaf, ...] | None

    @cached_property
    def fixed(self) -> bool:
        return self.leaves is not None

    @cached_property
    def is_array(self) -> bool:
        """True if a value is a single array (not a Dict or a Tuple)."""
        return self.leaves is not None and len(self.leaves) == 1 and self.leaves[0].path == ()

    def build(self, leaf_value: Callable[[int], Any]) -> Any:
        """A value with this space's structure, in which leaf i is `leaf_value(i)`."""
        if self.is_array:  # most spaces are a single array
            return leaf_value(0)
        numbers = iter(range(len(self.leaves or ())))
        return _build(self.space, lambda: leaf_value(next(numbers)))

    def copied(self, array: Callable[[int], Array]) -> Any:
        """An observation of this space, in which leaf i is a copy of `array(i)`."""
        leaves = self.leaves or ()
        return self.build(lambda index: leaves[index].copied(array(index)))

    def row_of(self, observations: Any, row: int) -> Any:
        """A copy of one row's observation from the observations of a batch."""
        if not self.fixed:
            return observations[row]
        parts = [part for _, part in self.parts(observations)]
        return self.copied(lambda index: parts[index][row])

    def parts(self, value: Any) -> Iterator[tuple[Leaf, Any]]:
        """Yield each leaf with its part of `value`.

        Raises:
            KeyError, IndexError, TypeError: a part is missing.
        """
        if self.is_array:
            assert self.leaves is not None
            return iter(((self.leaves[0], value),))
        return self._parts(value)

    def _parts(self, value: Any) -> Iterator[tuple[Leaf, Any]]:
        for leaf in self.leaves or ():
            part = value
            for key in leaf.path:
                part = part[key]
            yield leaf, part


def _build(space: spaces.Space[Any], next_leaf: Callable[[], Any]) -> Any:
    if isinstance(space, spaces.Dict):
        return {key: _build(sub, next_leaf) for key, sub in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_build(sub, next_leaf) for sub in space.spaces)
    return next_leaf()


def _flat(space: spaces.Space[Any], path: Path) -> Iterator[tuple[Path, spaces.Space[Any]]]:
    if isinstance(space, spaces.Dict):
        for key, sub in space.spaces.items():
            yield from _flat(sub, (*path, key))
    elif isinstance(space, spaces.Tuple):
        for index, sub in enumerate(space.spaces):
            yield from _flat(sub, (*path, index))
    else:
        yield path, space


_FIXED = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


def space_layout(space: spaces.Space[Any], start_bytes: int, rows: int = 1) -> SpaceLayout:
    """Lay out a value of `space` for each of `rows` rows, beginning at `start_bytes`."""
    leaves: list[Leaf] = []
    offset = start_bytes
    for path, sub in _flat(space, ()):
        if not isinstance(sub, _FIXED):
            return SpaceLayout(space, None)
        shape, dtype = tuple(sub.shape or ()), np.dtype(sub.dtype)
        leaf = Leaf(path, shape, dtype, offset, isinstance(sub, spaces.Discrete), rows)
        leaves.append(leaf)
        offset = align(offset + leaf.size_bytes)
    return SpaceLayout(space, tuple(leaves))


def end_bytes(layout: SpaceLayout, start_bytes: int) -> int:
    """The first free offset after a space that was laid out from `start_bytes` on."""
    if not layout.leaves:
        return start_bytes
    last = layout.leaves[-1]
    return align(last.offset_bytes + last.size_bytes)


def align(offset_bytes: int) -> int:
    """Round an offset up to the next cache line."""
    return -(-offset_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def mask_size(space: spaces.Space[Any]) -> int:
    """The length of an action mask for MaskablePPO of sb3-contrib; 0 if the space has no masks."""
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    if isinstance(space, spaces.MultiDiscrete):
        return int(space.nvec.sum())
    if isinstance(space, spaces.MultiBinary):
        return 2 * int(np.prod(space.shape))
    return 0


@dataclass(frozen=True)
class SlotLayout:
    """The memory of a queue pair: a header, an action, two places for observations, and rewards.

    A place holds an observation and its action mask. The worker writes the answer to request k to
    place k modulo 2. So the previous answer stays intact, even if the worker is killed while it
    writes the next answer. `observation` and `mask` describe place 0, and `place_bytes` is the
    distance to place 1. The rewards are float64. If there is only one row, its reward is in the
    header.
    """

    action: SpaceLayout
    observation: SpaceLayout
    mask: Leaf
    place_bytes: int
    rewards: Leaf | None
    size_bytes: int
    rows: int = 1

    @property
    def leaves(self) -> tuple[tuple[Leaf, ...] | None, ...]:
        """The leaves; layouts with equal leaves are equal, even if the spaces' bounds differ."""
        return self.action.leaves, self.observation.leaves, (self.mask,)


HEADER_BYTES = 3 * ALIGNMENT_BYTES


def slot_layout(
    observation_space: spaces.Space[Any], action_space: spaces.Space[Any], rows: int = 1
) -> SlotLayout:
    """Lay out an env's queue pair; ConfigError if there are several rows but no fixed layout."""
    offset = HEADER_BYTES
    action = space_layout(action_space, offset, rows)
    offset = end_bytes(action, offset)
    place = offset
    observation = space_layout(observation_space, place, rows)
    offset = end_bytes(observation, place)
    mask = Leaf((), (mask_size(action_space),), np.dtype(np.bool_), offset, rows=rows)
    place_bytes = align(offset + mask.size_bytes) - place
    offset = place + 2 * place_bytes
    rewards = None
    if rows > 1:
        for name, layout in (("action_space", action), ("observation_space", observation)):
            if not layout.fixed:
                raise ConfigError(
                    f"{name} of an env with {rows} rows must be made of Box, Discrete, "
                    f"MultiDiscrete, MultiBinary, Dict and Tuple, got {layout.space}"
                )
        rewards = Leaf((), (), np.dtype(np.float64), offset, rows=rows)
        offset = align(offset + rewards.size_bytes)
    return SlotLayout(action, observation, mask, place_bytes, rewards, offset, rows)
