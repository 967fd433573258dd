"""The players of one pool must agree on what they play: one batch has one shape."""

from __future__ import annotations

from collections.abc import Sequence

from sc2pool.errors import ConfigError
from sc2pool.pool.ipc.messages import Hello


def agreed(hellos: Sequence[Hello | None]) -> Hello:
    """What all players said of their spaces.

    Raises:
        ConfigError: two of them differ; names both envs and both spaces.
    """
    first = hellos[0]
    assert first is not None, "every worker has said hello"
    for env, hello in enumerate(hellos):
        for name in ("observation_space", "action_space"):
            given, expected = getattr(hello, name), getattr(first, name)
            if given != expected:
                raise ConfigError(f"env {env}: {name} is {given}, but env 0 has {expected}")
    return first
