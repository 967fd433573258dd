"""Checks a recording of the actions sent to a pool and the transitions that it returned.

    Began(env, …)  Sent(env, number)  Received(env, …)  ─► Checker ─► violations.

In each env, every action is answered once, by a transition with the action's checksum. The
transition is one step after the env's previous transition, in the same episode and game. But a
synthetic transition reports a fault, is a truncation with reward 0, and ends with the last
observation that the game sent. Every episode is played once, in one env. The two players of a match
may be two envs. If so, each of the two envs keeps these rules, and both agree on the episode, its
loop, its end and its faults. Agents of a team also agree on the game and the reward.

The checker does no I/O and reads no clock. A recording can last for hours, so the checker's memory
does not grow with the recording.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.support.audit.audited.task import LAST_LOOP, STEP_MUL, Stamp, checksum


class Mark(NamedTuple):
    """The facts of a fault that an info reports."""

    instance: int
    kind: str


@dataclass(frozen=True)
class Began:
    """The first observation after a reset by the trainer."""

    env: int
    shown: Stamp
    mark: Mark | None = None
    """The fault in the reset's `reset_infos`."""


@dataclass(frozen=True)
class Sent:
    """An action was sent to an env."""

    env: int
    number: int


@dataclass(frozen=True)
class Received:
    """A transition that the trainer gets.

    Attributes:
        shown: The observation, or the next episode's first one if the episode is over.
        final: The last observation of the episode that is over.
        mark: The fault in the transition's own info.
        reset_mark: The fault in the `reset_infos` of the episode that began with this transition.
        untold: True if the game ended without a message, so its last state was already shown.
    """

    env: int
    shown: Stamp
    reward: float
    terminated: bool
    truncated: bool
    final: Stamp | None = None
    synthetic: bool = False
    untold: bool = False
    mark: Mark | None = None
    reset_mark: Mark | None = None


Record = Began | Sent | Received
_Common = Callable[[Began | Received], dict[str, object]]
"""The fields that records of several rows must have in common."""


@dataclass(frozen=True)
class Violation:
    """One broken rule in a recording."""

    env: int
    what: str

    def __str__(self) -> str:
        return f"env {self.env}: {self.what}"


@dataclass
class _Env:
    last: Stamp | None = None
    sent: int | None = None


@dataclass
class _PlayedEpisodes:
    """The numbers of played episodes: all numbers below `next`, except those in `skipped`."""

    next: int = 0
    skipped: set[int] = field(default_factory=set)

    def play(self, number: int) -> bool:
        """Record an episode as played; True if it is played for the first time."""
        if number >= self.next:
            self.skipped.update(range(self.next, number))
            self.next = number + 1
            return True
        if number in self.skipped:
            self.skipped.remove(number)
            return True
        return False


class Checker:
    """Takes the records one by one.

    Args:
        ahead: The number of episodes that spares may hold while later episodes are played.
        book: True if the pool numbers the episodes; False for envs that a user wrote.
        realtime: True if games run without waiting for actions. In real time the machine's speed
            decides how many loops and actions an observation has seen.
        rows: The number of envs that play one episode. These envs have consecutive numbers from
            `rows * i` on, and their records come in this order.
        agents: The number of neighbouring envs that are one team.
    """

    def __init__(
        self,
        ahead: int = 0,
        *,
        book: bool = True,
        realtime: bool = False,
        rows: int = 1,
        agents: int = 1,
    ) -> None:
        self._ahead = ahead
        self._rows = rows
        self._agents = agents
        self._is_first = True
        self._is_first_of_team = True
        self._newest: dict[int, Received | Began] = {}
        self._book = book
        self._realtime = realtime
        self._envs: dict[int, _Env] = {}
        self._played = _PlayedEpisodes()
        self._game_episodes: dict[int, int] = {}
        """The number of the newest episode of each game process."""
        self._marked: set[int] = set()
        self.synthetic = 0

    def check(self, record: Record) -> list[Violation]:
        """The violations in the recording's next record."""
        env = self._envs.setdefault(record.env, _Env())
        self._is_first = record.env % self._rows == 0
        self._is_first_of_team = record.env % self._agents == 0
        if isinstance(record, Began):
            env.sent, env.last = None, record.shown
            found = [*self._first(record.shown), *self._mark(record.mark)]
        elif isinstance(record, Sent):
            found = [] if env.sent is None else [f"the transition of action {env.sent} is lost"]
            env.sent = record.number
        elif env.sent is None or env.last is None:
            found = ["a transition that no action asked for"]
        else:
            found = self._received(record, env.last, env.sent)
            env.sent, env.last = None, record.shown
        if not isinstance(record, Sent):
            self._newest[record.env] = record
            if not self._is_first:
                first = self._newest.get(record.env - record.env % self._rows)
                found += _agree(first, record, _of_all)
            if not self._is_first_of_team:
                first = self._newest.get(record.env - record.env % self._agents)
                found += _agree(first, record, _of_team)
        return [Violation(record.env, what) for what in found]

    def interrupted(self, lost: int) -> None:
        """Record an interrupted call; up to this number of further episodes may never be shown."""
        self._ahead += lost

    def unanswered(self) -> list[Violation]:
        """The actions that have no transition at the end of a recording."""
        return [
            Violation(number, f"the transition of action {env.sent} is lost")
            for number, env in self._envs.items()
            if env.sent is not None
        ]

    def _received(self, got: Received, last: Stamp, sent: int) -> list[str]:
        over = got.terminated or got.truncated
        found = []
        if (got.final is not None) != over:
            found.append(f"over is {over}, but the terminal observation is {got.final}")
        if got.synthetic:
            self.synthetic += 1
            found += _synthetic(got, last)
        else:
            found += self._real(got, got.final or got.shown, last, sent)
        if over:
            found += self._first(got.shown)
        elif got.reset_mark is not None:
            found.append("a fault in the reset of an episode that did not begin")
        return [*found, *self._mark(got.mark), *self._mark(got.reset_mark)]

    def _first(self, shown: Stamp) -> list[str]:
        """The violations in the first observation of an episode."""
        found = []
        loop = 0 if self._realtime else shown.loop  # in real time a game starts some loops late
        if (loop, shown.actions, shown.checksum) != (0, 0, 0):
            found.append(f"an episode begins in the middle: {shown}")
        if not self._book or not self._is_first:
            pass
        elif not self._played.play(shown.episode):
            found.append(f"episode {shown.episode} is played twice")
        elif len(self._played.skipped) > self._ahead:
            found.append(f"episodes {sorted(self._played.skipped)} are passed over")
        if not self._is_first_of_team:
            return found
        if shown.game_episode <= self._game_episodes.get(shown.instance, 0):
            found.append(f"episode {shown.game_episode} of game {shown.instance:x} is shown twice")
        self._game_episodes[shown.instance] = shown.game_episode
        return found

    def _real(self, got: Received, answer: Stamp, last: Stamp, sent: int) -> list[str]:
        expected = last._replace(
            loop=last.loop + STEP_MUL,
            actions=last.actions + 1,
            checksum=checksum(sent, last.tag),
        )
        if self._realtime and answer.loop >= last.loop and answer.actions >= last.actions:
            expected = answer._replace(
                instance=last.instance, game_episode=last.game_episode, episode=last.episode
            )
        found = [
            f"{name} is {given}, expected {wanted}"
            for name, given, wanted in zip(Stamp._fields, answer, expected, strict=True)
            if given != wanted
        ]
        if got.reward != sent and self._is_first_of_team:
            found.append(f"the reward is {got.reward}, expected {sent}")
        if got.mark is not None:
            found.append("a fault in the info of a real transition")
        ended = expected.loop == LAST_LOOP or (got.untold and self._realtime)
        if (got.terminated, got.truncated) != (ended, False):
            found.append(
                f"terminated={got.terminated}, truncated={got.truncated} at loop {expected.loop}"
            )
        return found

    def _mark(self, mark: Mark | None) -> list[str]:
        if mark is None or not self._is_first:
            return []
        if mark.instance in self._marked:
            return [f"the fault of instance {mark.instance} is marked twice"]
        self._marked.add(mark.instance)
        return []


def _agree(first: Received | Began | None, other: Received | Began, common: _Common) -> list[str]:
    """The fields that must be equal in two rows, but differ."""
    if first is None:
        return ["a row without the first one"]
    given, wanted = common(other), common(first)
    return [
        f"{name} is {given.get(name)}, but {value} in the first row"
        for name, value in wanted.items()
        if given.get(name) != value
    ]


def _of_all(record: Received | Began) -> dict[str, object]:
    """The fields that all rows of an episode have in common."""
    shown = {"episode": record.shown.episode, "loop": record.shown.loop, "fault": record.mark}
    if isinstance(record, Began):
        return shown
    return shown | {
        "terminated": record.terminated,
        "truncated": record.truncated,
        "synthetic": record.synthetic,
        "last loop": None if record.final is None else record.final.loop,
        "fault in the reset": record.reset_mark,
    }


def _of_team(record: Received | Began) -> dict[str, object]:
    """The fields that the agents of a team have in common."""
    shown = {"game": record.shown.instance, "episode of the game": record.shown.game_episode}
    return shown if isinstance(record, Began) else shown | {"reward": record.reward}


def _synthetic(got: Received, last: Stamp) -> list[str]:
    found = []
    if got.mark is None:
        found.append("a synthetic transition without its fault")
    if got.terminated or not got.truncated:
        found.append("a synthetic transition must be a truncation")
    if got.reward != 0.0:
        found.append(f"a synthetic transition with reward {got.reward}")
    if got.final != last:
        found.append(f"a synthetic transition ends with {got.final}, not the last good {last}")
    return found


def check(records: Iterable[Record], rows: int = 1, agents: int = 1) -> list[Violation]:
    """All violations in a whole recording."""
    checker = Checker(rows=rows, agents=agents)
    found = [violation for record in records for violation in checker.check(record)]
    return [*found, *checker.unanswered()]
