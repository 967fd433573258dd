"""What the players of a pool must have in common: one batch has one shape."""

from __future__ import annotations

from collections.abc import Sequence

from sc2pool.errors import ConfigError
from sc2pool.pool.ipc.messages import Hello


def agreed(hellos: Sequence[Hello]) -> Hello:
    """The spaces and rows of all players, which agree: one batch has one shape.

    Raises:
        ConfigError: two of them differ; names both envs and what they said.
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
    """Check that the envs of all these players have as many rows.

    Raises:
        ConfigError: one has more or fewer than the first.
    """
    for env, hello in enumerate(hellos):
        if hello.rows != hellos[0].rows:
            raise ConfigError(f"env {env}: rows is {hello.rows}, but env 0 has {hellos[0].rows}")
