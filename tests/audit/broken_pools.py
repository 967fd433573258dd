"""Pools that are broken on purpose, each in a way of its own, for the checker to see.

Each is a coat over a sound pool, or over the tape of one, and lies about what came of a step:
a class reads as what the defect would be, and what the trainer would get.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from tests.support.audit.audited.task import Stamp

EPISODE = Stamp._fields.index("episode")

Step = tuple[Any, Any, Any, list[dict[str, Any]]]


class Tape:
    """What a sound pool returned, to be returned again; actions are made alike each time."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.num_envs = env.num_envs
        self.reset_infos: Any = [{}] * env.num_envs
        self._results: list[tuple[Any, Any]] = []

    def reset(self) -> Any:
        return self._record(self.env.reset())

    def step(self, actions: Any) -> Step:
        return self._record(self.env.step(actions))

    def _record(self, result: Any) -> Any:
        self.reset_infos = self.env.reset_infos
        self._results.append(deepcopy((result, self.reset_infos)))
        return result

    def rewound(self) -> Tape:
        """The same from the beginning."""
        again = Tape(self)
        results = iter(deepcopy(self._results))

        def play(*_: Any) -> Any:
            result, again.reset_infos = next(results)
            return result

        again.reset = again.step = play  # type: ignore[method-assign]
        return again


class Crooked:
    """A sound pool so far."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.num_envs = env.num_envs
        self.steps = 0
        self.before: Any = None

    @property
    def reset_infos(self) -> Sequence[dict[str, Any]]:
        return self.env.reset_infos

    def reset(self) -> Any:
        self.before = self.env.reset()
        return self.before

    def step(self, actions: Any) -> Step:
        self.steps += 1
        step = self.lie(*self.env.step(actions))
        self.before = step[0]
        return step

    def lie(self, observations: Any, *rest: Any) -> Step:
        return (observations, *rest)


class SwapsObservations(Crooked):
    """Two envs' rows change places."""

    def lie(self, observations: Any, *rest: Any) -> Step:
        return (observations[::-1], *rest)


class SwapsRewards(Crooked):
    """Only the rewards do."""

    def lie(self, observations: Any, rewards: Any, *rest: Any) -> Step:
        return observations, rewards[::-1], *rest


class SwapsActions(Crooked):
    """An action goes to another env than it was meant for."""

    def step(self, actions: Any) -> Step:
        return super().step(actions[::-1])


class RepeatsAnObservation(Crooked):
    """One env's row is not written again."""

    def lie(self, observations: Any, *rest: Any) -> Step:
        if self.steps == 5:
            observations[1] = self.before[1]
        return (observations, *rest)


class RepeatsATransition(Crooked):
    """A transition is handed out a second time, and its action never played."""

    last: Step | None = None

    def step(self, actions: Any) -> Step:
        self.steps += 1
        if self.steps != 5 or self.last is None:
            self.last = self.env.step(actions)
        return self.last


class LosesATransition(Crooked):
    """An action is played that the trainer never hears of."""

    def step(self, actions: Any) -> Step:
        if self.steps == 5:
            self.env.step(actions)
        return super().step(actions)


class PlaysATicketTwice(Crooked):
    """Two envs play the same episode."""

    def lie(self, observations: Any, *rest: Any) -> Step:
        observations[:, EPISODE] = observations[0, EPISODE]
        return (observations, *rest)

    def reset(self) -> Any:
        (observations,) = self.lie(super().reset())
        return observations


class CallsAFaultAnEnd(Crooked):
    """A fault is reported as the game's own end."""

    def lie(self, observations: Any, rewards: Any, dones: Any, infos: Any) -> Step:
        for info in infos:
            if info.pop("sc2pool.synthetic", False):
                del info["sc2pool.fault"]
                info["TimeLimit.truncated"] = False
        return observations, rewards, dones, infos


class HidesAFault(Crooked):
    """The env continues with its next episode as if nothing had been."""

    def lie(self, observations: Any, rewards: Any, dones: Any, infos: Any) -> Step:
        for env, info in enumerate(infos):
            if "sc2pool.fault" in info:
                infos[env] = {"TimeLimit.truncated": False}
                dones[env] = False
        return observations, rewards, dones, infos


class TellsAFaultTwice(Crooked):
    """The fault stands in the next episode's reset info as well."""

    reset_infos: list[dict[str, Any]] = []  # noqa: RUF012  # shadows the property

    def lie(self, observations: Any, rewards: Any, dones: Any, infos: Any) -> Step:
        self.reset_infos = infos
        return observations, rewards, dones, infos

    def reset(self) -> Any:
        self.reset_infos = [{}] * self.num_envs
        return super().reset()


class PaysForAFault(Crooked):
    """A synthetic transition has a reward."""

    def lie(self, observations: Any, rewards: Any, dones: Any, infos: Any) -> Step:
        made_up = np.array([info.get("sc2pool.synthetic", False) for info in infos])
        return observations, rewards + 0.5 * made_up, dones, infos


class EndsAFaultWithTheNextEpisode(Crooked):
    """The terminal observation is the new episode's first."""

    def lie(self, observations: Any, rewards: Any, dones: Any, infos: Any) -> Step:
        for env, info in enumerate(infos):
            if "sc2pool.fault" in info:
                info["terminal_observation"] = observations[env].copy()
        return observations, rewards, dones, infos


class EndsWithoutATerminalObservation(Crooked):
    """An episode is over, and its last observation is nowhere."""

    def lie(self, observations: Any, rewards: Any, dones: Any, infos: Any) -> Step:
        for info in infos:
            info.pop("terminal_observation", None)
        return observations, rewards, dones, infos


class CallsAnEndATimeLimit(Crooked):
    """The game's own end is reported as a truncation."""

    def lie(self, observations: Any, rewards: Any, dones: Any, infos: Any) -> Step:
        for done, info in zip(dones, infos, strict=True):
            info["TimeLimit.truncated"] = bool(done)
        return observations, rewards, dones, infos


class SwapsPlayers(Crooked):
    """The two players of each match change places."""

    def lie(self, observations: Any, *rest: Any) -> Step:
        pairs = observations.reshape(-1, 2, observations.shape[-1])
        return (pairs[:, ::-1].reshape(observations.shape), *rest)


class SwapsPlayersActions(Crooked):
    """Each player's action is played by the other one."""

    def step(self, actions: Any) -> Step:
        return super().step(actions.reshape(-1, 2, 2)[:, ::-1].reshape(actions.shape))


class HidesAFaultFromOnePlayer(Crooked):
    """Only the first player of the match hears of it."""

    def lie(self, observations: Any, rewards: Any, dones: Any, infos: Any) -> Step:
        for env in range(1, self.num_envs, 2):
            if "sc2pool.fault" in infos[env]:
                infos[env] = {"TimeLimit.truncated": False}
                dones[env] = False
        return observations, rewards, dones, infos


class EndsForOnePlayer(Crooked):
    """The match is over for the second player, and cut short for the first one."""

    def lie(self, observations: Any, rewards: Any, dones: Any, infos: Any) -> Step:
        for info in infos[::2]:
            info["TimeLimit.truncated"] = "terminal_observation" in info
        return observations, rewards, dones, infos


BROKEN_MATCHES: dict[type[Crooked], str] = {
    SwapsPlayers: "instance is",
    HidesAFaultFromOnePlayer: "synthetic is False, but True in the first row",
    EndsForOnePlayer: "terminated is True, but False in the first row",
    CallsAFaultAnEnd: "terminated=True, truncated=False",
    PlaysATicketTwice: "is played twice",
}
"""The same of matches."""
BROKEN: dict[type[Crooked], str] = {
    SwapsObservations: "instance is",
    SwapsRewards: "the reward is",
    RepeatsAnObservation: "loop is",
    RepeatsATransition: "loop is",
    LosesATransition: "loop is 56, expected 48",
    PlaysATicketTwice: "is played twice",
    CallsAFaultAnEnd: "terminated=True, truncated=False",
    HidesAFault: "instance is",
    TellsAFaultTwice: "is marked twice",
    PaysForAFault: "a synthetic transition with reward 0.5",
    EndsAFaultWithTheNextEpisode: "not the last good",
    EndsWithoutATerminalObservation: "the terminal observation is None",
    CallsAnEndATimeLimit: "terminated=False, truncated=True",
}
"""How the checker words each."""
