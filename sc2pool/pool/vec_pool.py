"""The interface that `Pool` and a cluster's pool share, with checks of players and masks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Never, Protocol

import numpy as np
from gymnasium import spaces

from sc2pool.errors import ConfigError
from sc2pool.pool.batch import Batch
from sc2pool.pool.messages import Hello
from sc2pool.pool.queues.layout import Array, mask_size
from sc2pool.pool.statistics import PoolStats


def refuse_to_travel(pool: object) -> Never:
    """Refuse to copy or pickle a pool or its env; this serves as their `__reduce__` method.

    Raises:
        TypeError: always; Python also raises TypeError for an object that cannot be pickled.
    """
    raise TypeError(
        f"the games of {pool!r} cannot be copied or pickled: make another env in its place"
    )


class VecPool(Protocol):
    """A pool of n envs that are stepped together; `Pool` documents each member."""

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
    """The masks of these rows' newest observations; if all are None, the masks from `ask`."""
    masks: Sequence[Any] = [pool.action_mask(row) for row in rows]
    if all(mask is None for mask in masks):
        masks = ask()
    return [whole_mask(mask, pool.action_space) for mask in masks]


def whole_mask(mask: Array | None, actions: spaces.Space[Any]) -> Any:
    """The action mask; if it is None, a mask that allows every action.

    A task can return None if every action is possible, but an algorithm always needs a mask.
    """
    size = mask_size(actions)
    return np.ones(size, np.bool_) if size and mask is None else mask


def agreed(hellos: Sequence[Hello]) -> Hello:
    """The first `Hello`; ConfigError, with both values, if two envs' spaces or rows differ."""
    first = hellos[0]
    check_rows(hellos)
    for env, hello in enumerate(hellos):
        for name in ("observation_space", "action_space"):
            value, expected = getattr(hello, name), getattr(first, name)
            if value != expected:
                raise ConfigError(f"env {env}: {name} is {value}, but env 0 has {expected}")
    return first


def check_rows(hellos: Sequence[Hello]) -> None:
    """Raise ConfigError unless all players have the same number of rows."""
    for env, hello in enumerate(hellos):
        if hello.rows != hellos[0].rows:
            raise ConfigError(f"env {env}: rows is {hello.rows}, but env 0 has {hellos[0].rows}")
