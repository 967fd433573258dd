"""The gym player: any `gymnasium.Env` behind a queue pair.

Rules: the env belongs to its worker and is reset in place. Its actions are not checked, and its
observations are cast to the space. `seed` and `options` are passed to `reset` if they have a value,
or if the episode requests both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import gymnasium
import numpy as np

from sc2pool.errors import ConfigError, ObservationError, PauseError
from sc2pool.game.clock import Tick
from sc2pool.players.operations import set_attr
from sc2pool.tasks.player import Episode, Player
from sc2pool.tasks.queue_pair import QueuePair, Transition, check_info

EnvFn = Callable[[], "gymnasium.Env[Any, Any]"]
_NEW: Final = tuple.__new__
"""Makes a named tuple in half the time that the tuple's own (Python) constructor takes."""


@dataclass(frozen=True)
class GymSpec:
    """An env to be made in a worker."""

    env_fn: EnvFn
    index: int
    """The index of the function in `env_fns`."""

    def player(self) -> Player:
        """The env's player; ConfigError if `env_fn` returns no env, or one that lacks a space."""
        env = self.env_fn()
        # Refuse a class, too: a class whose body defines the spaces has these attributes.
        if isinstance(env, type) or not hasattr(env, "observation_space"):
            raise ConfigError(
                f"env_fns[{self.index}] returned {env!r:.80}, expected a gymnasium.Env"
            )
        for name in ("observation_space", "action_space"):
            space = getattr(env, name, None)
            if not isinstance(space, gymnasium.Space):
                raise ConfigError(
                    f"the env of env_fns[{self.index}] has the {name} "
                    f"{space!r:.80}, expected a space of gymnasium"
                )
        return GymPlayer(env)


class GymPlayer(Player):
    """Plays episodes on one env."""

    strict = False

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        self._env = env
        self.observation_space = env.observation_space
        self.action_space = env.action_space
        self.metadata = env.metadata or {}
        self.render_mode = env.render_mode
        self._is_new = True
        # If a game of an `SC2GymEnv` fails, the env's info may have the pool's keys.
        unwrapped = getattr(env, "unwrapped", env)
        self.is_a_pool = type(unwrapped).__module__.startswith("sc2pool.")
        # The info of a `RealTimeEnv` also has the pool's keys, because it has the env's lateness.
        is_live = any(one.__module__ == "sc2pool.realtime.env" for one in type(unwrapped).__mro__)
        self._live: Any = unwrapped if is_live else None

    async def play(self, episode: Episode, pair: QueuePair) -> None:
        env = self._env
        if self._is_new:  # the worker is new at the start and after a fault
            self._is_new = False
            for name, value in self.attributes[0].items():
                set_attr(env, name, value)
        begun = env.reset(**reset_keywords(episode))
        if not isinstance(begun, tuple | list) or len(begun) != 2:
            raise _wrong("reset", begun, "observation and info")
        observation, info = begun
        self._check(info)
        pair.put(Transition(observation, 0.0, False, False, info))
        over = False
        while not over:
            result = env.step(await pair.get_action())
            if not isinstance(result, tuple | list) or len(result) != 5:
                raise _wrong("step", result, "observation, reward, terminated, truncated and info")
            observation, reward, terminated, truncated, info = result
            if info:
                self._check(info)
            if type(reward) is not float:
                reward = as_number(reward)
            over = terminated or truncated
            step = (observation, reward, terminated, truncated, info, None)
            pair.put(_NEW(Transition, step))

    def _check(self, info: Any) -> None:
        if info and not isinstance(info, Mapping):
            raise ObservationError(f"the info is {info!r:.80}, expected a dict")
        if not self.is_a_pool and self._live is None:
            check_info(info)

    def hold(self) -> None:
        super().hold()
        game_pid = None if self._live is None else self._live.game_pid
        if game_pid is None:
            return
        # Only a worker that is paused imports psutil.
        from sc2pool.processes.tree import is_at_rest  # noqa: PLC0415

        if not is_at_rest(game_pid):
            self.resume_now()
            raise PauseError(
                f"the game of {type(self._live).__name__} (process {game_pid}) runs on, because "
                f"its worker has not started it; play it without a pool, with a PauseGate"
            )

    def tick(self) -> Tick | None:
        return None if self._live is None else self._live.lateness

    def target(self, row: int = 0) -> Any:  # noqa: ARG002
        return self._env

    def close(self) -> None:
        self._env.close()


def _wrong(method: str, returned: Any, expected: str) -> ObservationError:
    kind = type(returned).__name__
    given = f"a {kind} of {len(returned)}" if isinstance(returned, tuple | list) else f"a {kind}"
    return ObservationError(
        f"the env's {method}() returned {given}, expected {expected}, as in gymnasium"
    )


def as_number(reward: Any) -> float:
    """Convert a reward to a float; AsyncVectorEnv, too, takes an array or list of one element."""
    try:
        return float(reward if isinstance(reward, float) else np.asarray(reward).item())
    except (TypeError, ValueError) as error:
        raise type(error)(f"the reward is {reward!r:.80}, expected one number: {error}") from None


def reset_keywords(episode: Episode) -> dict[str, Any]:
    """The keywords of the `reset` that begins this episode."""
    keywords: dict[str, Any] = {}
    if episode.seed is not None or episode.both_keywords:
        keywords["seed"] = episode.seed
    if episode.options or episode.both_keywords:
        keywords["options"] = dict(episode.options) or None
    return keywords
