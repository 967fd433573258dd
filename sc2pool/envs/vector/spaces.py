"""The spaces of `SC2VectorEnv`, made from those of its envs.

`observation_mode` says what the envs' spaces must have in common: "same" (all), "different" (shape
and dtype; each env keeps its own bounds), or the two spaces themselves. Rules: spaces are checked
before the first reset; no env is made only to learn its spaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gymnasium import spaces
from gymnasium.spaces.utils import is_space_dtype_shape_equiv
from gymnasium.vector.utils import batch_differing_spaces, batch_space

from sc2pool.errors import ConfigError
from sc2pool.pool.agreement import check_rows
from sc2pool.pool.ipc.messages import Hello

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
    """Makes the spaces of a vector env from those of its envs.

    Args:
        observation_mode: see `gymnasium.vector.AsyncVectorEnv`; a tuple is (batched, single).
        shared_memory: as there: with True, spaces that are not gymnasium's own raise.

    Attributes, after `agree` was called: `single_observation_space`, `single_action_space`,
    `observation_space` and `action_space` (batched).

    Raises:
        ValueError, TypeError: no such mode, or `shared_memory` is not a bool.
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
        """Make the vector env's spaces from the hello of each env.

        Returns:
            The first env's hello.

        Raises:
            RuntimeError: the spaces of an env do not fit those of the first; names the env.
            ConfigError: the envs do not have as many rows each.
            ValueError: a custom space, and `shared_memory` is True.
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
