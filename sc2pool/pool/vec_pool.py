"""The interface that `Pool` and a cluster's pool share, and the checks that all pools share.

`agreed` checks that all players have the same spaces and rows, before the first step.

`check_actions` checks a batch of actions before any of it is sent. Rules: an action outside its
space raises an `ActionError`, which names the env (the row, if envs have several), the given and
the expected value. Only a Box action beyond its bounds is clipped, as SB3 does for its own
policies. A batch is checked as a whole, with numpy, because every step does it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Never, Protocol

import numpy as np
from gymnasium import spaces

from sc2pool.errors import ActionError, ConfigError
from sc2pool.pool.batch import Batch
from sc2pool.pool.messages import Hello
from sc2pool.pool.queues.layout import Array, Leaf, mask_size
from sc2pool.pool.statistics import PoolStats
from sc2pool.protocol import compiled


def refuse_to_travel(pool: object) -> Never:
    """The `__reduce__` of a pool: a pool and its env cannot be copied or pickled.

    Raises:
        TypeError: always, as Python does for objects that cannot be pickled.
    """
    raise TypeError(
        f"the games of {pool!r} cannot be copied or pickled: make another env in its place"
    )


class VecPool(Protocol):
    """n envs that are stepped together; `Pool` documents each member."""

    n: int
    rows: int
    n_rows: int
    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]
    metadata: Mapping[str, Any]
    render_mode: str | None

    def seed(self, seed: int | None, seeded: int | None = None) -> None: ...
    def reset(
        self,
        seeds: Sequence[int | None] | None = None,
        options: Sequence[Mapping[str, Any]] | None = None,
    ) -> Batch: ...
    def send(self, actions: Any) -> None: ...
    def recv(self) -> Batch: ...
    def pause(self, envs: Iterable[int] | None = None) -> None: ...
    def resume(self, envs: Iterable[int] | None = None) -> None: ...
    def action_mask(self, row: int) -> Array | None: ...
    def call(self, rows: Sequence[int], operation: str, *arguments: Any) -> list[Any]: ...
    def render(self, rows: Sequence[int]) -> list[Any]: ...
    def set_attr(self, rows: Sequence[int], name: str, value: Any) -> None: ...
    def void_episodes(self) -> None: ...
    def show_figures(self, figures: Mapping[str, float]) -> None: ...
    def stats(self) -> PoolStats: ...
    def close(self) -> None: ...
    @property
    def closed(self) -> bool: ...
    @property
    def game_version(self) -> str | None: ...


def masks_of(pool: VecPool, rows: Sequence[int], ask: Callable[[], Sequence[Any]]) -> Sequence[Any]:
    """The masks of these rows, which arrived with their newest observations.

    Args:
        ask: asks the envs for their masks; called if no row has one.
    """
    masks: Sequence[Any] = [pool.action_mask(row) for row in rows]
    if all(mask is None for mask in masks):
        masks = ask()
    return [whole_mask(mask, pool.action_space) for mask in masks]


def whole_mask(mask: Array | None, actions: spaces.Space[Any]) -> Any:
    """The mask; if it is None, a mask that allows every action.

    A task may return None where every action is possible; an algorithm wants a mask each time.
    """
    size = mask_size(actions)
    return np.ones(size, np.bool_) if size and mask is None else mask


def agreed(hellos: Sequence[Hello]) -> Hello:
    """The first hello, after a check that the spaces and rows of all players are equal.

    Raises:
        ConfigError: two players differ. The message names both envs and their values.
    """
    first = hellos[0]
    check_rows(hellos)
    for env, hello in enumerate(hellos):
        for name in ("observation_space", "action_space"):
            value, expected = getattr(hello, name), getattr(first, name)
            if value != expected:
                raise ConfigError(f"env {env}: {name} is {value}, but env 0 has {expected}")
    return first


def check_rows(hellos: Sequence[Hello]) -> None:
    """Check that all players have the same number of rows.

    Raises:
        ConfigError: a player has more or fewer rows than the first.
    """
    for env, hello in enumerate(hellos):
        if hello.rows != hellos[0].rows:
            raise ConfigError(f"env {env}: rows is {hello.rows}, but env 0 has {hellos[0].rows}")


ARRAY_SPACES = (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary, spaces.Box)


def check_count(actions: Any, n: int, each: str = "env") -> None:
    """Raise `ActionError` unless there are n actions."""
    try:
        given = len(actions)
    except TypeError:
        raise ActionError(f"expected {n} actions, one per {each}, got {actions!r}") from None
    if given != n:
        raise ActionError(f"expected {n} actions, one per {each}, got {given}")


def is_batch_of(leaf: Leaf, actions: Any, n: int) -> bool:
    """True if these are n actions of this shape and dtype, in one array."""
    return (
        isinstance(actions, np.ndarray)
        and actions.dtype == leaf.dtype
        and actions.shape == (n, *leaf.shape)
    )


def check_actions(
    space: spaces.Space[Any] | None, actions: Any, numbers: Sequence[int], each: str = "env"
) -> Sequence[Any] | Array:
    """Check the actions; for array spaces return them as an array (len(numbers), *shape).

    Args:
        space: of one action; None to check only the number of the actions, and to return them.
        actions: one for each of these envs or rows.
        numbers: indices of the envs or rows, for the message.
        each: "env" or "row", for the message.

    Raises:
        ActionError: one of them is outside the space.
    """
    if space is None:
        check_count(actions, len(numbers), each)
        return actions  # type: ignore[no-any-return]
    if not isinstance(space, ARRAY_SPACES):
        check_count(actions, len(numbers), each)
        for number, action in zip(numbers, actions, strict=True):
            if not space.contains(action):
                raise ActionError(f"{each} {number}: action {action!r} is not in {space}")
        return list(actions)
    try:
        batch = np.asarray(actions)
    except ValueError as error:
        check_count(actions, len(numbers), each)
        raise ActionError(f"actions do not form an array for {space}: {error}") from None
    shape = (len(numbers), *(space.shape or ()))
    if batch.shape != shape:
        check_count(actions, len(numbers), each)
        raise ActionError(f"actions for {space} must have shape {shape}, got {batch.shape}")
    if isinstance(space, spaces.Box):
        return _check_box(space, batch, numbers, each)
    if isinstance(space, spaces.MultiBinary) and batch.dtype.kind in "bf":
        # SB3's policies return MultiBinary actions as floats.
        _raise_where((batch != 0) & (batch != 1), space, batch, numbers, each)
        return batch.astype(space.dtype)
    if batch.dtype.kind not in "iu":
        raise ActionError(f"actions for {space} must be integers, got dtype {batch.dtype}")
    fast = compiled.fast
    if fast and isinstance(space, spaces.Discrete):
        first = int(space.start)
        if fast.all_within(batch, first, first + int(space.n)):
            return batch
    low, high = _integer_bounds(space)
    _raise_where((batch < low) | (batch >= high), space, batch, numbers, each)
    return batch


def _integer_bounds(space: spaces.Space[Any]) -> tuple[Any, Any]:
    if isinstance(space, spaces.Discrete):
        return space.start, space.start + space.n
    if isinstance(space, spaces.MultiDiscrete):
        return space.start, space.start + space.nvec
    return 0, 2  # MultiBinary


def _check_box(space: spaces.Box, batch: Array, numbers: Sequence[int], each: str) -> Array:
    if batch.dtype.kind not in "iufb":
        raise ActionError(f"actions for {space} must be numbers, got dtype {batch.dtype}")
    if batch.dtype.kind == "f":
        _raise_where(np.isnan(batch), space, batch, numbers, each)
    return np.clip(batch, space.low, space.high).astype(space.dtype, copy=False)


def _raise_where(
    bad: Array, space: spaces.Space[Any], batch: Array, numbers: Sequence[int], each: str
) -> None:
    if np.count_nonzero(bad):  # runs in each step, and `any` costs several times as much
        place = int(np.argmax(bad.reshape(len(batch), -1).any(axis=1)))
        action = batch[place].tolist()
        raise ActionError(f"{each} {numbers[place]}: action {action} is not in {space}")
