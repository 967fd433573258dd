"""The calls that `Pool` and the pool of a cluster share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Never, Protocol

from gymnasium import spaces

from sc2pool.pool.queues.layout import Array
from sc2pool.pool.statistics.stats import PoolStats
from sc2pool.pool.stepping.batch import Batch


def refuse_to_travel(pool: object) -> Never:
    """The `__reduce__` of a pool: neither it nor an env that has it can be copied or pickled.

    Raises:
        TypeError: as of every object that cannot be pickled.
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


def newest_masks(pool: VecPool, rows: Iterable[int]) -> list[Array | None] | None:
    """The masks that came with the newest observations of these rows; None if there are none.

    A task may give a mask at some steps only, so single ones may be None.
    """
    masks = [pool.action_mask(row) for row in rows]
    return masks if any(mask is not None for mask in masks) else None
