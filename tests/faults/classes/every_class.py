"""Plays every env class through one interface, for tests of the classes' common promises.

Programs that the tests start import this module, each in the environment of one library.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import AutoresetMode

import sc2pool

LIBRARIES = {
    "SC2GymEnv": "",
    "SC2VectorEnv": "",
    "StarCraft2Env": "",
    "SubprocSC2VecEnv": "stable_baselines3",
    "SC2ParallelEnv": "pettingzoo",
    "SC2TianshouVectorEnv": "tianshou",
}
"""The library that each class needs, or "". Tests of the class for a cluster are in `tests/ray`."""

MODES = dict.fromkeys(LIBRARIES, ("",)) | {
    "SC2VectorEnv": tuple(mode.value for mode in AutoresetMode)
}
"""The autoreset modes of each class."""

OF_ONE_GAME = ("SC2GymEnv", "SC2ParallelEnv", "StarCraft2Env")


def make(name: str, **keywords: Any) -> Any:
    """Makes an env of the class with this name; by default the env has one game."""
    env_class = getattr(sc2pool.smac if name == "StarCraft2Env" else sc2pool, name)
    if name in OF_ONE_GAME:
        return env_class(**keywords)
    return env_class(**keywords if "env_fns" in keywords else {"n": 1, **keywords})


def short_episodes(name: str, steps: int) -> dict[str, Any]:
    """Keywords for a task whose episodes have this many steps; SMAC's class plays 3m."""
    if name == "StarCraft2Env":
        return {"map_name": "3m"}
    task = "3m" if name == "SC2ParallelEnv" else "MoveToBeacon"
    return {"task": task, "max_loops": 8 * steps}


class Played(NamedTuple):
    """The result of a step. A learner is an env, a row or an agent, and is named by its index."""

    observations: dict[int, Any]
    """The newest observation of each learner that was played, was reset, or is in `unchanged`."""
    last: dict[int, Any]
    """The last observation of each learner whose episode is over."""
    synthetic: set[int]
    """The learners with a synthetic transition."""
    given: Any
    """Everything that the call of `step` or `reset` returned."""
    unchanged: frozenset[int] = frozenset()
    """The learners that were not played, and whose last result is shown again."""


class Driver:
    """Plays an env at random, and begins the next episode of each learner whose episode is over.

    Args:
        name: the name of the class.
        mode: the mode of its autoreset.
        keywords: the keywords of its constructor.
    """

    def __init__(self, name: str, mode: str = "", **keywords: Any) -> None:
        if mode:
            keywords["autoreset_mode"] = mode
        self.env = make(name, **keywords)
        self._mode = mode
        self._random = np.random.default_rng(0)
        self._over: list[int] = []
        self._reset, self._step = {
            "SC2GymEnv": (self._reset_gym, self._step_gym),
            "SC2VectorEnv": (self._reset_vector, self._step_vector),
            "StarCraft2Env": (self._reset_smac, self._step_smac),
            "SC2ParallelEnv": (self._reset_parallel, self._step_parallel),
            "SC2TianshouVectorEnv": (self._reset_tianshou, self._step_tianshou),
        }.get(name, (self._reset_sb3, self._step_sb3))

    @property
    def pool(self) -> Any:
        return self.env._pool if hasattr(self.env, "_pool") else self.env.pool

    def reset(self) -> Played:
        """Begin an episode of every learner."""
        self._over = []
        return self._reset()

    def step(self) -> Played:
        """If no step resets the learners whose episode is over, reset them; else play a step."""
        return self._step()

    def close(self) -> None:
        self.env.close()

    # ---- how each class is played -------------------------------------------------------------

    def _reset_sb3(self) -> Played:
        observations = self.env.reset()
        return Played(
            dict(enumerate(rows_of(observations))), {}, set(), (observations, self.env.reset_infos)
        )

    def _step_sb3(self) -> Played:
        actions = [self.env.action_space.sample() for _ in range(self.env.num_envs)]
        observations, rewards, dones, infos = given = self.env.step(np.array(actions))
        return Played(
            dict(enumerate(rows_of(observations))),
            {i: infos[i]["terminal_observation"] for i in np.flatnonzero(dones)},
            {i for i, info in enumerate(infos) if "sc2pool.synthetic" in info},
            (*given, rewards),
        )

    def _reset_vector(self) -> Played:
        given = self.env.reset()
        return Played(dict(enumerate(rows_of(given[0]))), {}, set(), given)

    def _step_vector(self) -> Played:
        if self._over and self._mode == AutoresetMode.DISABLED.value:
            mask = np.isin(np.arange(self.env.num_envs), self._over)
            self._over = []
            given = self.env.reset(options={"reset_mask": mask})
            unchanged = frozenset(np.flatnonzero(~mask).tolist())
            return Played(dict(enumerate(rows_of(given[0]))), {}, set(), given, unchanged)
        given = self.env.step(self.env.action_space.sample())
        observations, _, terminated, truncated, infos = given
        shown = dict(enumerate(rows_of(observations)))
        over = np.flatnonzero(terminated | truncated).tolist()
        if self._mode == AutoresetMode.SAME_STEP.value:
            last = {i: infos["final_obs"][i] for i in over}
        else:
            last = {i: shown[i] for i in over}
            self._over = over
        synthetic = set(np.flatnonzero(infos.get("_sc2pool.synthetic", [])).tolist())
        return Played(shown, last, synthetic, given)

    def _reset_gym(self) -> Played:
        given = self.env.reset()
        return Played({0: given[0]}, {}, set(), given)

    def _step_gym(self) -> Played:
        if self._over:
            return self.reset()
        given = self.env.step(self.env.action_space.sample())
        observation, _, terminated, truncated, info = given
        self._over = [0] * (terminated or truncated)
        synthetic = {0} if "sc2pool.synthetic" in info else set()
        return Played({0: observation}, {0: observation} if self._over else {}, synthetic, given)

    def _reset_parallel(self) -> Played:
        given = self.env.reset()
        return Played(dict(enumerate(given[0].values())), {}, set(), (given, self._state()))

    def _step_parallel(self) -> Played:
        if self._over:
            return self.reset()
        actions = {
            name: self.env.action_space(name).sample(mask)
            for name, mask in zip(self.env.agents, self._masks(), strict=True)
        }
        given = self.env.step(actions)
        observations, _, terminated, truncated, infos = given
        self._over = [0] * any({**terminated, **truncated}.values())
        shown = dict(enumerate(observations.values()))
        synthetic = {i for i, info in enumerate(infos.values()) if "sc2pool.synthetic" in info}
        return Played(shown, shown if self._over else {}, synthetic, (given, self._state()))

    def _state(self) -> Any:
        return self.env.state() if hasattr(self.env, "state_space") else None

    def _masks(self) -> Iterable[Any]:
        """The action masks of the pool itself, because the returned masks may have been changed."""
        masks = [self.pool.action_mask(row) for row in range(len(self.env.agents))]
        return [None if mask is None else mask.astype(np.int8) for mask in masks]

    def _reset_smac(self) -> Played:
        given = self.env.reset()
        return Played(dict(enumerate([*given[0], given[1]])), {}, set(), given)

    def _step_smac(self) -> Played:
        if self._over:
            return self.reset()
        masks = [self.env.get_avail_agent_actions(i) for i in range(self.env.n_agents)]
        actions = [self._random.choice(np.flatnonzero(mask)) for mask in masks]
        _, over, info = self.env.step(actions)
        self._over = [0] * over
        observations, state = self.env.get_obs(), self.env.get_state()
        shown = dict(enumerate([*observations, state]))
        synthetic = set(range(len(shown))) if "sc2pool.fault" in info else set()
        given = (shown, info, masks, self.env.get_avail_actions(), self.env.get_capabilities())
        return Played(shown, shown if over else {}, synthetic, given)

    def _reset_tianshou(self) -> Played:
        given = self.env.reset()
        return Played(dict(enumerate(given[0])), {}, set(), given)

    def _step_tianshou(self) -> Played:
        if self._over:
            over, self._over = self._over, []
            given = self.env.reset(over)
            return Played(dict(zip(over, given[0], strict=True)), {}, set(), given)
        actions = [space.sample() for space in self.env.action_space]
        given = self.env.step(np.array(actions))
        observations, _, terminated, truncated, infos = given
        self._over = np.flatnonzero(terminated | truncated).tolist()
        shown = dict(enumerate(observations))
        synthetic = {i for i, info in enumerate(infos) if "sc2pool.synthetic" in info}
        return Played(shown, {i: shown[i] for i in self._over}, synthetic, given)


def rows_of(batch: Any) -> list[Any]:
    """The single observations of a batch, not copied; their space may have no fixed layout."""
    if isinstance(batch, np.ndarray):
        return list(batch) if batch.ndim > 1 else [batch[i : i + 1] for i in range(len(batch))]
    if isinstance(batch, dict):
        parts = {key: rows_of(part) for key, part in batch.items()}
        length = len(next(iter(parts.values())))
        return [{key: part[i] for key, part in parts.items()} for i in range(length)]
    if batch and all(isinstance(part, np.ndarray | dict) for part in batch):
        return [tuple(row) for row in zip(*map(rows_of, batch), strict=True)]
    return list(batch)
