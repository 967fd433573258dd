"""Plays episodes of a policy on a pool, and yields the result of each as soon as it has ended.

Rules: each game plays its share of the episodes, so short episodes do not count more than long
ones. An episode that a fault cut short is yielded, does not count in a mean, and is played again.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from sc2pool.integration import LOOPS_PER_S, Policy, PoolVecEnv


class Ended(NamedTuple):
    """An episode that has ended."""

    episode_return: float
    """The sum of the first player's rewards."""
    steps: int
    end: str
    """The match's result; without one, the reason of the end."""
    whole: bool
    """Whether no fault cut the episode short."""
    info: dict[str, Any]
    """The episode's last info."""


class Watcher(Protocol):
    """An observer of everything that is played."""

    def begin(self, observations: Any, /) -> None:
        """All rows have begun an episode."""
        ...

    def step(self, actions: Any, observations: Any, rewards: Any, over: Any, infos: Any, /) -> None:
        """All rows have made a step with these actions and results of `VecEnv.step`."""
        ...


def play_episodes(
    env: PoolVecEnv[Any],
    policy: Policy,
    episodes: int,
    *,
    deterministic: bool,
    loops: int | None = None,
    watchers: Sequence[Watcher] = (),
) -> Iterator[Ended]:
    """Play this number of whole episodes.

    Args:
        env: the games, not reset yet.
        deterministic: whether the policy plays its best actions instead of drawing them.
        loops: the game loops of a step, to play at the game's own pace; None for full speed.
        watchers: observers of the episodes.
    """
    torch.set_num_threads(1)  # the networks are small; the games need the cores
    games, first_rows = env.pool.n, range(0, env.num_envs, env.pool.rows)
    left = [(episodes + game) // games for game in range(games)]
    masks = "action_masks" in inspect.signature(policy.predict).parameters
    masks = masks and env.has_attr("action_masks")
    returns, steps = np.zeros(env.num_envs), np.zeros(env.num_envs, int)
    seen, over, state = env.reset(), np.ones(env.num_envs, bool), None
    next_step = time.monotonic()
    for watcher in watchers:
        watcher.begin(seen)
    while any(left):
        more = {"action_masks": np.stack(env.env_method("action_masks"))} if masks else {}
        actions, state = policy.predict(
            seen, state=state, episode_start=over, deterministic=deterministic, **more
        )
        seen, rewards, over, infos = env.step(actions)
        for watcher in watchers:
            watcher.step(actions, seen, rewards, over, infos)
        returns += rewards
        steps += 1
        for game, row in enumerate(first_rows):
            if over[row] and left[game]:
                end, whole = end_of(infos[row])
                left[game] -= whole
                yield Ended(float(returns[row]), int(steps[row]), end, whole, infos[row])
        returns[over] = steps[over] = 0
        if loops is not None:
            next_step += loops / LOOPS_PER_S
            time.sleep(max(0.0, next_step - time.monotonic()))


def end_of(info: dict[str, Any]) -> tuple[str, bool]:
    """The end of the episode with this last info, in words, and whether no fault cut it short."""
    if "sc2pool.fault" in info:
        return f"fault: {info['sc2pool.fault']['kind']}", False
    if "sc2pool.result" in info:
        return info["sc2pool.result"], True
    return "time limit" if info["TimeLimit.truncated"] else "ended", True
