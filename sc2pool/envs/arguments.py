"""Checks the arguments of `SC2VectorEnv`'s methods, begins its episodes, makes its spaces.

Arguments are checked and converted by pure functions. Rules: the errors are those of
`AsyncVectorEnv`: a wrong type is a TypeError, a wrong value or length is a ValueError
(`ConfigError` is a ValueError). The caller's objects are not changed.

`begin_episodes` begins the pool's episodes when the trainer resets, for `SC2TianshouVectorEnv` as
well. Rule: without seed and options, a reset of a task's envs begins the same episodes as an
autoreset, so spare games may have these episodes ready.

`VectorSpaces` makes the vector env's spaces from the spaces of its envs. `observation_mode` says
how far the envs' observation spaces must agree: "same" (they are equal), "different" (same shape
and dtype; each env keeps its own bounds), or a tuple of the two spaces to use. Rules: spaces are
checked before the first reset; no env is made only to learn its spaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
from gymnasium import spaces
from gymnasium.spaces.utils import is_space_dtype_shape_equiv
from gymnasium.vector.utils import batch_differing_spaces, batch_space

from sc2pool.envs.shared_keywords import whole_number
from sc2pool.errors import ConfigError
from sc2pool.pool.episodes import Request, check_options
from sc2pool.pool.messages import Hello
from sc2pool.pool.pool import Pool
from sc2pool.pool.queues.layout import Array
from sc2pool.pool.vec_pool import check_rows

Seeds = int | Sequence[int | None] | None


def check_concurrency(max_concurrency: object) -> int | None:
    """Check how many envs may run at one time (None: all); `ConfigError` if the number is below 1.

    The error messages are those of gymnasium's `AsyncVectorEnv`, which has the same keyword.
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
    """A seed, or None, for each env: env i gets `seed + i`, or the i-th element of a list of seeds.

    Raises:
        ValueError: a list of another length.
        ConfigError: a seed that is not a whole number of at least 0.
    """
    if seed is None:
        return [None] * num_envs
    if not _is_list(seed):
        first = whole_number("seed", seed, 0)
        return [first + env for env in range(num_envs)]
    if len(seed) != num_envs:
        raise ValueError(
            "If seeds are passed as a list the length must match "
            f"num_envs={num_envs} but got length={len(seed)}."
        )
    return [None if one is None else whole_number("seed", one, 0) for one in seed]


def _is_list(seed: Seeds) -> TypeGuard[Sequence[int | None]]:
    """True for a list, a tuple, a range or an array of seeds."""
    return np.ndim(seed) > 0  # type: ignore[arg-type]  # a list may have None


def seeds_of_tasks(
    seed: Seeds, seeds: Sequence[int | None], envs: Sequence[int]
) -> tuple[list[int | None], int | list[int] | None]:
    """How tasks use `seed`: one seed is for all episodes; a list seeds each env's first episode.

    `seeds` is what `seed_of_each(seed)` returns. Returns a seed, or None, for each env's first
    episode, and a seed for all other episodes, or None if these keep their previous seed.
    """
    if not _is_list(seed):
        return [None] * len(seeds), seeds[0]
    known = [one for one in (seeds[env] for env in envs) if one is not None]
    # Without the length in front, the list `[7]` would give the episodes of the single seed 7.
    return list(seeds), [len(known), *known] if known else None


def whole_envs(rows: Sequence[int], rows_of_one: int) -> list[int]:
    """The indices of the pool's envs that have these rows, ascending.

    `ConfigError` if only some of an env's rows are given.
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
    """The envs that `options["reset_mask"]` selects (without it, all envs), and the other options.

    `ConfigError` if the options are not a mapping, `TypeError` if the mask is not a numpy array of
    bool, `ValueError` if the mask's shape is not (num_envs,) or no element is True.
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


def begin_episodes(
    pool: Pool, envs: Sequence[int], seed: Seeds, options: Mapping[str, Any], *, is_task: bool
) -> None:
    """Begin an episode in each of `envs`. If `envs` has all envs, first drop the pending steps.

    Args:
        envs: The indices of the envs to reset, ascending.
        seed: The seeds, as in `SC2VectorEnv.reset`. A list has a seed for each row; each env uses
            the seed of its first row.

    Raises:
        ValueError: the numbers of seeds and rows differ.
        ConfigError: a seed that is not a whole number of at least 0.
    """
    seeds, run_seed = seed_of_each(seed, pool.n_rows)[:: pool.rows], None
    if is_task:
        seeds, run_seed = seeds_of_tasks(seed, seeds, envs)
    requests = None
    if not is_task or options or any(seeds[env] is not None for env in envs):
        requests = [Request(seeds[env], options, both_keywords=True) for env in envs]
    if run_seed is not None:
        pool.seed(run_seed)
    if len(envs) == pool.n:
        pool.drop()  # an interrupted call may have left steps pending
    pool.begin(envs, requests)


ObservationMode = str | tuple[spaces.Space[Any], spaces.Space[Any]]

_GYMNASIUMS_OWN = (
    spaces.Box,
    spaces.Discrete,
    spaces.MultiDiscrete,
    spaces.MultiBinary,
    spaces.Text,
    spaces.Graph,
    spaces.Sequence,
    spaces.OneOf,
)


class VectorSpaces:
    """Makes the spaces of a vector env from its envs' spaces; `agree` stores them.

    The arguments are those of `gymnasium.vector.AsyncVectorEnv`. If `observation_mode` is a tuple,
    it holds the batched and the single space. With `shared_memory`, `agree` refuses spaces that are
    not gymnasium's own. `TypeError` for a pair of other things than spaces; `ValueError` for any
    other wrong mode, or if `shared_memory` is not a bool.
    """

    single_observation_space: spaces.Space[Any]
    single_action_space: spaces.Space[Any]
    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]

    def __init__(self, observation_mode: ObservationMode, shared_memory: bool) -> None:
        if not isinstance(shared_memory, bool):
            raise ConfigError(
                f"shared_memory must be True or False, got {shared_memory!r}; for a number of envs "
                f"write n={shared_memory!r}"
            )
        if isinstance(observation_mode, tuple) and len(observation_mode) == 2:
            if not all(isinstance(space, spaces.Space) for space in observation_mode):
                raise TypeError(
                    "Expected both elements of observation_mode to be Spaces, got "
                    f"{[type(space).__name__ for space in observation_mode]}"
                )
        elif observation_mode not in ("same", "different"):
            raise ValueError(
                "Invalid `observation_mode`, expected: 'same' or 'different' or tuple of single "
                f"and batch observation space, actual got {observation_mode}"
            )
        self._mode = observation_mode
        self._shared_memory = shared_memory

    def agree(self, hellos: Sequence[Hello | None]) -> Hello:
        """Make the vector env's spaces from the envs' first messages; return the first message.

        `RuntimeError`, which names the env, if an env's spaces do not fit the first env's spaces.
        `ConfigError` if the envs have different numbers of rows. `ValueError` for a custom space,
        if `shared_memory` is True.
        """
        present = [hello for hello in hellos if hello is not None]
        first = present[0]
        check_rows(present)
        own = [hello.observation_space for hello in present]
        if isinstance(self._mode, tuple):
            self.observation_space, self.single_observation_space = self._mode
        else:
            self.single_observation_space = own[0]
        self._check_observation_spaces(own)
        for env, hello in enumerate(present):
            if hello.action_space != first.action_space:
                raise RuntimeError(
                    f"env {env}: action_space is {hello.action_space}, but env 0 has "
                    f"{first.action_space}; to be batched they must be equal"
                )
        if self._shared_memory and is_custom(first.observation_space):
            raise ValueError(
                f"observation_space {first.observation_space} is a custom space, which "
                "cannot be put in shared memory; with shared_memory=False it is pickled"
            )
        if self._mode == "same":
            self.observation_space = batch_space(own[0], len(own) * first.rows)
        elif self._mode == "different":
            each = [space for space in own for _ in range(first.rows)]
            self.observation_space = batch_differing_spaces(each)
        self.single_action_space = first.action_space
        self.action_space = batch_space(first.action_space, len(present) * first.rows)
        return first

    def _check_observation_spaces(self, own: Sequence[spaces.Space[Any]]) -> None:
        expected = self.single_observation_space
        for env, space in enumerate(own):
            if self._mode == "same" and space != expected:
                raise RuntimeError(
                    "observation_mode='same', but the sub-environments observation spaces are not "
                    f"equivalent. Env {env} has {space}, env 0 has {expected}. If this is "
                    "intentional, use `observation_mode='different'` instead."
                )
            if self._mode != "same" and not is_space_dtype_shape_equiv(expected, space):
                raise RuntimeError(
                    "the sub-environments observation spaces do not share a common shape and "
                    f"dtype: env {env} has {space}, expected one like {expected}"
                )


def is_custom(space: spaces.Space[Any]) -> bool:
    """True if the class of the space, or of a part of it, is not one of gymnasium's."""
    if isinstance(space, spaces.Dict):
        return any(map(is_custom, space.spaces.values()))
    if isinstance(space, spaces.Tuple):
        return any(map(is_custom, space.spaces))
    return not isinstance(space, _GYMNASIUMS_OWN)
