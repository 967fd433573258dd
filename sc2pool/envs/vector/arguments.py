"""Arguments of `SC2VectorEnv`'s methods, checked and converted.

Pure functions. Rules: the errors are those of `AsyncVectorEnv`: a wrong type is a TypeError, a
wrong value or length is a ValueError (`ConfigError` is one); the caller's objects are not changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex

import numpy as np

from sc2pool.envs.specs import whole_number
from sc2pool.errors import ConfigError
from sc2pool.pool.episodes import check_options
from sc2pool.pool.queues.layout import Array

Seeds = int | Sequence[int | None] | None


def check_concurrency(max_concurrency: object) -> int | None:
    """How many envs may run at one time; None for all.

    The errors have the words of gymnasium's `AsyncVectorEnv`, which takes the same keyword.

    Raises:
        ConfigError: not None and not a whole number of at least 1.
    """
    if max_concurrency is None:
        return None
    if isinstance(max_concurrency, bool) or not isinstance(max_concurrency, int | np.integer):
        raise ConfigError(
            f"`max_concurrency` must be an integer or None, got {type(max_concurrency)}."
        )
    if max_concurrency < 1:
        raise ConfigError(f"`max_concurrency` must be a positive or None, got {max_concurrency}.")
    return int(max_concurrency)


def seed_of_each(seed: Seeds, num_envs: int) -> list[int | None]:
    """A seed, or None, for each env: env i gets `seed + i`, or the i-th of a list.

    Raises:
        ValueError: a list of another length.
        ConfigError: a seed that is not a whole number of at least 0.
    """
    if seed is None:
        return [None] * num_envs
    if isinstance(seed, SupportsIndex):
        first = whole_number("seed", seed, 0)
        return [first + env for env in range(num_envs)]
    if len(seed) != num_envs:
        raise ValueError(
            "If seeds are passed as a list the length must match "
            f"num_envs={num_envs} but got length={len(seed)}."
        )
    return [None if one is None else whole_number("seed", one, 0) for one in seed]


def seeds_of_tasks(
    seed: Seeds, seeds: Sequence[int | None], envs: Sequence[int]
) -> tuple[list[int | None], int | list[int] | None]:
    """How a seed is used for tasks: one seed for all episodes, or one for each env's first.

    Args:
        seed: as given to `reset`.
        seeds: what `seed_of_each` returned for it.
        envs: the envs that are reset.

    Returns:
        A seed, or None, for the first episode of each env; and the seed of all other episodes,
        None to go on as before.
    """
    if isinstance(seed, SupportsIndex):
        return [None] * len(seeds), seeds[0]
    known = [one for one in (seeds[env] for env in envs) if one is not None]
    # The length makes it another seed than the integer that a list of one stands for.
    return list(seeds), [len(known), *known] if known else None


def whole_envs(rows: Sequence[int], rows_of_one: int) -> list[int]:
    """The envs of the pool that have these rows, ascending.

    Raises:
        ConfigError: not all rows of one of them are there.
    """
    if rows_of_one == 1:
        return list(rows)
    envs = list(dict.fromkeys(row // rows_of_one for row in rows))
    if len(envs) * rows_of_one != len(rows):
        raise ConfigError(
            f"the {rows_of_one} envs of a game begin their episodes together (the first of them is "
            f"a multiple of {rows_of_one}): `options['reset_mask']` must hold all of them or none, "
            f"got True for {list(rows)}"
        )
    return envs


def split_mask(
    options: Mapping[str, Any] | None, num_envs: int
) -> tuple[list[int], dict[str, Any]]:
    """The envs that `options["reset_mask"]` names, or all if it is absent; and the other options.

    Raises:
        ConfigError: the options are no mapping.
        TypeError: the mask is not a numpy array of bool.
        ValueError: its shape is not (num_envs,), or it has no True.
    """
    others = {} if options is None else options
    check_options(others)
    others = dict(others)
    if "reset_mask" not in others:
        return list(range(num_envs)), others
    mask: Array = others.pop("reset_mask")
    if not isinstance(mask, np.ndarray):
        raise TypeError(f"`options['reset_mask']` must be a numpy array, got {type(mask)}")
    if mask.shape != (num_envs,):
        raise ValueError(
            f"`options['reset_mask']` must have shape `({num_envs},)`, got {mask.shape}"
        )
    if mask.dtype != np.bool_:
        raise TypeError(f"`options['reset_mask']` must have `dtype=np.bool_`, got {mask.dtype}")
    if not mask.any():
        raise ValueError(
            "`options['reset_mask']` must contain a boolean array with at least one True value, "
            f"got reset_mask={mask}"
        )
    return np.flatnonzero(mask).tolist(), others
