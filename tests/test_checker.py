"""The checker reports nothing for a sound pool with faults, and reports each broken pool.

A pool that is broken on purpose wraps a sound pool or a recording of a sound pool, and reports one
step wrongly. The name of a broken pool's class says the defect; the docstring says the result.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sc2pool import SubprocSC2VecEnv
from sc2pool.config import Limits, PoolConfig, RestartPolicy
from sc2pool.pool.statistics import PoolEvent
from tests.support.audit.audited.match_task import AuditMatch
from tests.support.audit.audited.task import HARMS, LAST_LOOP, STEP_MUL, AuditTask, Stamp
from tests.support.audit.audited.team_task import AuditTeam, AuditTeamMatch
from tests.support.audit.checker import Checker, Mark, Received, Record, check
from tests.support.audit.ledger import Ledger
from tests.support.audit.playing import first_ready, in_sync
from tests.support.audit.recording import marks_of
from tests.support.audit.victims import pid_of
from tests.support.pools import maker

EPISODE = Stamp._fields.index("episode")

Step = tuple[Any, Any, Any, list[dict[str, Any]]]


class Tape:
    """A recording of a sound pool, which returns the same results for the same actions."""

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
        """The same recording from its beginning."""
        again = Tape(self)
        results = iter(deepcopy(self._results))

        def play(*_: Any) -> Any:
            result, again.reset_infos = next(results)
            return result

        again.reset = again.step = play  # type: ignore[method-assign]
        return again


class Crooked:
    """Base class of the broken pools, which itself reports everything rightly."""

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
    """The rewards of two envs change places."""

    def lie(self, observations: Any, rewards: Any, *rest: Any) -> Step:
        return observations, rewards[::-1], *rest


class SwapsActions(Crooked):
    """An action goes to the wrong env."""

    def step(self, actions: Any) -> Step:
        return super().step(actions[::-1])


class RepeatsAnObservation(Crooked):
    """One env's row is not updated, so it shows the previous observation."""

    def lie(self, observations: Any, *rest: Any) -> Step:
        if self.steps == 5:
            observations[1] = self.before[1]
        return (observations, *rest)


class RepeatsATransition(Crooked):
    """A transition is returned a second time, and the action is never played."""

    last: Step | None = None

    def step(self, actions: Any) -> Step:
        self.steps += 1
        if self.steps != 5 or self.last is None:
            self.last = self.env.step(actions)
        return self.last


class LosesATransition(Crooked):
    """A step is played whose transition is never returned."""

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
    """A fault is not reported: the env continues with its next episode."""

    def lie(self, observations: Any, rewards: Any, dones: Any, infos: Any) -> Step:
        for env, info in enumerate(infos):
            if "sc2pool.fault" in info:
                infos[env] = {"TimeLimit.truncated": False}
                dones[env] = False
        return observations, rewards, dones, infos


class TellsAFaultTwice(Crooked):
    """The next episode's reset info reports the fault a second time."""

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
    """The terminal observation is the new episode's first observation."""

    def lie(self, observations: Any, rewards: Any, dones: Any, infos: Any) -> Step:
        for env, info in enumerate(infos):
            if "sc2pool.fault" in info:
                info["terminal_observation"] = observations[env].copy()
        return observations, rewards, dones, infos


class EndsWithoutATerminalObservation(Crooked):
    """An episode's last observation is missing."""

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
    """The players' actions change places."""

    def step(self, actions: Any) -> Step:
        return super().step(actions.reshape(-1, 2, 2)[:, ::-1].reshape(actions.shape))


class HidesAFaultFromOnePlayer(Crooked):
    """Only the first player's row reports the fault."""

    def lie(self, observations: Any, rewards: Any, dones: Any, infos: Any) -> Step:
        for env in range(1, self.num_envs, 2):
            if "sc2pool.fault" in infos[env]:
                infos[env] = {"TimeLimit.truncated": False}
                dones[env] = False
        return observations, rewards, dones, infos


class EndsForOnePlayer(Crooked):
    """The match ends for the second player, and is truncated for the first."""

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
"""The checker's words for each defect of a pool of matches."""
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
"""The checker's words for each defect."""


MakeEnv = Callable[..., SubprocSC2VecEnv]
QUICK = PoolConfig(
    limits=Limits(launch_s=30.0, create_join_s=10.0, reset_s=10.0, step_s=1.5, worker_grace_s=1.0),
    watchdog_interval_s=0.25,
    restart=RestartPolicy(per_env=20, per_pool_per_env=20),  # allows ten harms to two matches
    envs_per_worker=1,  # `Bad` records harm to a worker as harm to one instance
)
EPISODE_STEPS = LAST_LOOP // STEP_MUL
STRIKES = {
    5: (0, "game", signal.SIGKILL),
    10: (1, "worker", signal.SIGSTOP),
    # The last seat, which is a spare's if the pool has spares.
    25: (-1, "game", signal.SIGKILL),
    30: (-1, "worker", signal.SIGKILL),
}
"""Maps the number of a batch to a seat, the seat's process that gets a signal, and the signal."""
ASKED = {40: "crash", 45: "hang", 50: "exit"}
"""Maps the number of a batch to the harm that a request does to the first env's game."""


OF_MATCHES = {
    4: (0, "game", signal.SIGKILL),
    8: (1, "guest", signal.SIGSTOP),
    12: (0, "worker", signal.SIGKILL),
    28: (-1, "guest", signal.SIGKILL),
}
"""Like `STRIKES`, but for matches; "game" means the host's game."""


@pytest.fixture
def make_env(standin_dir: Path) -> Iterator[MakeEnv]:
    """Makes pools that play the audit, and closes them."""
    with maker(
        SubprocSC2VecEnv, n=3, task=AuditTask, seed=3, config=QUICK, game=standin_dir
    ) as make:
        yield make


class Bad:
    """Does the harm in `STRIKES` (signals) and `ASKED` (requests), and keeps a ledger of faults."""

    def __init__(
        self,
        env: SubprocSC2VecEnv,
        strikes: Mapping[int, tuple[int, str, signal.Signals]] = STRIKES,
        games: int = 1,
    ) -> None:
        self.env = env
        self.strikes = strikes
        self.games = games
        self.rows = env.pool.rows
        self.ledger = Ledger()
        self.batch = 0

    def strike(self) -> None:
        """Do the harm (a "strike") that is due before the next batch."""
        self.batch += 1
        if self.batch in self.strikes:
            seat, target, number = self.strikes[self.batch]
            victim = self.env.stats().instances[seat]
            pid = pid_of(victim, target, self.games)
            if pid is not None and victim.instance not in self.ledger.injected:
                self.ledger.inject(victim.instance, f"{target} {number.name}")
                os.kill(pid, number)

    def harms(self, envs: Sequence[int]) -> list[int]:
        """The harm that the next action of each of these envs does."""
        harms = [0] * len(envs)
        if self.batch in ASKED:
            victim = self.env.stats().instances[envs[0] // self.rows]
            if victim.state == "playing" and victim.instance not in self.ledger.injected:
                self.ledger.inject(victim.instance, ASKED[self.batch])
                harms[0] = HARMS.index(ASKED[self.batch])
        return harms

    def play(
        self, batches: Iterator[list[Record]], checker: Checker, at_least: int
    ) -> list[Record]:
        """Play this many batches, or more until all harm is settled; expects no violation."""
        played: list[Record] = []
        violations: list[Any] = []
        while self.batch < at_least or not self.ledger.settled():
            records = next(batches)
            violations += [found for record in records for found in checker.check(record)]
            played += records
            self.ledger.take_marks(marks_of(records, self.rows), time.monotonic())
            self.ledger.take_events(self.env.stats().events)
            self.strike()
        assert violations == []
        assert self.ledger.reconcile() == []
        assert len(self.ledger.events) >= len(self.strikes)
        return played


@pytest.mark.parametrize(
    ("play", "spares", "seed"),
    [(in_sync, 2, None), (first_ready, 0, 11)],
)
def test_a_sound_pool_passes(make_env: MakeEnv, play: Any, spares: int, seed: int | None) -> None:
    env = make_env(spares=spares, seed=seed)
    bad, checker = Bad(env), Checker(ahead=env.num_envs + spares)
    records = bad.play(play(env, bad.harms), checker, 2 * EPISODE_STEPS)
    assert checker.synthetic >= len(ASKED)
    received = [record for record in records if isinstance(record, Received)]
    assert len(received) == env.stats().env_steps
    assert sum(env.stats().replacements.values()) == len(bad.ledger.injected)


def test_a_sound_pool_of_matches_passes(make_env: MakeEnv) -> None:
    """The pool of team matches has a spare; `tape_of_matches` has single players and no spare."""
    spares, agents = 1, 2
    env = make_env(n=2, task=AuditTeamMatch, spares=spares)
    rows = 2 * agents
    bad = Bad(env, OF_MATCHES, games=2)
    checker = Checker(ahead=2 + spares, rows=rows, agents=agents)
    bad.play(first_ready(env, bad.harms), checker, EPISODE_STEPS + 5)
    of_envs = [mark for mark in bad.ledger.reported.values() if mark.env < 2]
    assert checker.synthetic >= len(ASKED) * rows
    assert checker.synthetic % rows == 0
    assert checker.synthetic <= rows * len(of_envs), "one truncation per row and fault"


STEPS = EPISODE_STEPS + 5
FAULT_AT = 8


def recorded(env: Any, steps: int = STEPS) -> list[Record]:
    """A run of `env`; the game of env 0 crashes in step `FAULT_AT`."""
    count = itertools.count(1)

    def harms(envs: Sequence[int]) -> list[int]:
        return [HARMS.index("crash") if next(count) == FAULT_AT else 0, *[0] * (len(envs) - 1)]

    batches = in_sync(env, harms)
    return list(itertools.chain.from_iterable(itertools.islice(batches, steps + 1)))


@pytest.fixture(scope="module")
def tape(standin_dir: Path) -> Tape:
    """A recorded run of a sound pool, in which a game crashes."""
    return taped(AuditTask, standin_dir)


@pytest.fixture(scope="module")
def tape_of_matches(standin_dir: Path) -> Tape:
    """A run of two sound matches, in which the host of the first match crashes."""
    return taped(AuditMatch, standin_dir, rows=2)


def taped(task: type[AuditTask], game: Path, rows: int = 1) -> Tape:
    with closing(SubprocSC2VecEnv(n=2, task=task, game=game)) as env:
        tape = Tape(env)
        assert wordings(recorded(tape), rows) == ""
    return tape


def wordings(records: Iterable[Record], rows: int = 1, agents: int = 1) -> str:
    return "\n".join(map(str, check(records, rows, agents)))


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_a_broken_pool_fails(tape: Tape, broken: type[Crooked]) -> None:
    assert wordings(recorded(tape.rewound())) == "", "the tape itself is sound"
    assert BROKEN[broken] in wordings(recorded(broken(tape.rewound()), steps=STEPS - 1))


@pytest.mark.parametrize("broken", BROKEN_MATCHES, ids=lambda broken: broken.__name__)
def test_a_broken_pool_of_matches_fails(tape_of_matches: Tape, broken: type[Crooked]) -> None:
    pool = broken(tape_of_matches.rewound())
    assert BROKEN_MATCHES[broken] in wordings(recorded(pool, steps=STEPS - 1), rows=2)


@pytest.mark.parametrize(
    ("mixing", "task", "rows", "agents"),
    [
        (SwapsActions, AuditTask, 1, 1),
        (SwapsPlayersActions, AuditMatch, 2, 1),
        (SwapsPlayersActions, AuditTeam, 2, 2),
    ],
    ids=["envs", "players", "agents"],
)
def test_a_pool_that_mixes_actions_up_fails(
    make_env: MakeEnv, mixing: type[Crooked], task: type[AuditTask], rows: int, agents: int
) -> None:
    """A recording cannot show this defect, because the game has to play the wrong action."""
    pool = mixing(make_env(n=2, task=task))
    assert "env 1: checksum is" in wordings(recorded(pool, steps=1), rows, agents)


def test_an_action_that_nothing_came_of_is_lost(tape: Tape) -> None:
    records = recorded(tape.rewound(), steps=3)
    assert wordings(records[:-1]) == "env 1: the transition of action 5 is lost"
    # The records end with two `Sent` and two `Received` for each of the last two steps.
    without = [*records[:-5], *records[-4:]]
    assert "env 1: the transition of action 3 is lost" in wordings(without)
    assert "a transition that no action asked for" in wordings([*records, records[-1]])


def test_a_skipped_episode_is_seen() -> None:
    checker = Checker(ahead=1)
    played = checker._played
    assert all(played.play(number) for number in (0, 2, 1, 4))
    assert played.skipped == {3}
    assert not played.play(1)


def event(instance: int, seat: str, at_s: float) -> PoolEvent:
    return PoolEvent("fault", at_s, seat, instance, "game-exited", "idle", "signal SIGKILL")


BOOKS = {
    "sound": ([1, 2], [event(1, "env 0", 1.0), event(2, "spare 3", 2.0)], [(0, 1)], ""),
    "not detected": ([1], [], [], "instance 1: harm was not detected"),
    "not harmed": ([], [event(1, "env 0", 1.0)], [(0, 1)], "failed without being harmed"),
    "not reported": ([1], [event(1, "env 0", 1.0)], [], "the fault of instance 1 is not reported"),
    "reported twice": ([1], [event(1, "env 0", 1.0)], [(0, 1), (0, 1)], "is reported twice"),
    "reported of another": ([1], [event(1, "env 0", 1.0)], [(2, 1)], "is reported as ('env 2'"),
    "made up": ([], [], [(0, 1)], "is reported as failed, but did not fail"),
    "a successor's too": (
        [1, 2],
        [event(1, "env 0", 1.0), event(2, "env 0", 2.0)],
        [(0, 1)],
        "",
    ),
    "a later one, not reported": (
        [1, 2],
        [event(1, "env 0", 1.0), event(2, "env 0", 99.0)],
        [(0, 1)],
        "the fault of instance 2 is not reported",
    ),
}


@pytest.mark.parametrize("case", BOOKS)
def test_the_ledger(case: str) -> None:
    injected, events, reported, expected = BOOKS[case]
    ledger = Ledger()
    for instance in injected:
        ledger.inject(instance, "harm")
    ledger.take_events(events)
    ledger.take_marks(((env, Mark(number, "game-exited")) for env, number in reported), at_s=10.0)
    found = ledger.reconcile()
    assert len(found) == bool(expected)
    assert expected in "".join(found)
