"""Tests two checks: is a silent game slow or hung, and do a game's loops cost ever more?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import chain, repeat

import pytest

from sc2pool.game import hang_detection
from sc2pool.game.episode import LoopCost, LoopCount
from sc2pool.game.hang_detection import (
    SILENCE_S,
    Activity,
    HangDetector,
    MatchSide,
    SideEvidence,
    judge,
)

# ---- hangs ---------------------------------------------------------------------------------------


LIMIT_S = 1000.0
IDLE, STARVED = (0.0, 0.0), (0.0, 0.9)
WORKS = (0.4, 0.0)
HARDLY_WORKS = (0.5 * hang_detection.IDLE_CPU_SHARE, 0.0)
"""Each pair: the share of time that a process runs, and the share that it waits for a processor."""


class Clock:
    """A clock whose time passes only in waits."""

    now_s = 50.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock.monotonic)
    return clock


def play(
    clock: Clock,
    *shares: tuple[float, float],
    most: int = 10,
    asleep: bool = True,
    in_real_time: bool = False,
) -> tuple[Sequence[float], HangDetector, list[str]]:
    """The waits for a game; each wait takes the next pair of shares, and the last pair repeats."""
    used = Activity(0.0, 0.0)
    warnings: list[str] = []
    detector = HangDetector(lambda: [used], lambda: asleep, warnings.append)
    deadline = detector.begin(LIMIT_S, may_fall_silent=in_real_time)
    waits = []
    for cpu, waiting in chain(shares, repeat(shares[-1])):
        wait_s = deadline.instant_s - clock.now_s
        waits.append(wait_s)
        clock.now_s += wait_s
        used = Activity(used.cpu_s + cpu * wait_s, used.waited_s + waiting * wait_s)
        later = detector.extend()
        if later is None or len(waits) == most:
            return waits, detector, warnings
        deadline = later
    raise AssertionError("unreachable")


@pytest.mark.parametrize(
    ("shares", "waits"),
    [
        pytest.param([IDLE], [0.5] * 2, id="idle is hung"),
        pytest.param([HARDLY_WORKS], [0.5] * 2, id="hardly working is hung"),
        pytest.param([WORKS], [0.5, 0.5, 2.0], id="working is slow, once"),
        pytest.param([STARVED, STARVED, WORKS], [0.5] * 3 + [2.0], id="starved, then working"),
    ],
)
def test_how_long_a_game_is_waited_for(clock, shares, waits):
    found, detector, _ = play(clock, *shares)
    assert found == [LIMIT_S * wait for wait in waits]
    assert not detector.silent


@pytest.mark.parametrize(
    ("share", "told"),
    [
        (0.9, "90%"),
        (1.2, "100%"),  # a wait for a processor is counted in full when it ends
    ],
)
def test_starved_is_waited_for_while_it_is_starved(clock, share, told):
    waits, _, warnings = play(clock, *[(0.0, share)] * 5, IDLE)
    assert waits == [LIMIT_S / 2] * 6
    assert f"waits for a processor {told} of the time" in warnings[0]


class TestInRealTime:
    def test_a_game_that_sleeps_has_ended_in_silence(self, clock):
        waits, detector, _ = play(clock, IDLE, in_real_time=True)
        assert sum(waits) == pytest.approx(1.5 * SILENCE_S)
        assert detector.silent

    @pytest.mark.parametrize(
        ("share", "asleep"), [(IDLE, False), (WORKS, True), (STARVED, True)], ids=str
    )
    def test_one_that_is_stopped_works_or_is_starved_has_not(self, clock, share, asleep):
        waits, detector, _ = play(clock, share, asleep=asleep, in_real_time=True, most=4)
        assert sum(waits) > LIMIT_S
        assert not detector.silent

    def test_the_next_wait_is_not_silent(self, clock):
        _, detector, _ = play(clock, IDLE, in_real_time=True)
        detector.begin(LIMIT_S)
        assert not detector.silent

    def test_a_limit_shorter_than_the_silence_leaves_no_time_for_it(self, clock):
        detector = HangDetector(lambda: [Activity(0.0, 0.0)], lambda: True)
        deadline = detector.begin(SILENCE_S, may_fall_silent=True)
        assert deadline.instant_s - clock.now_s == SILENCE_S / 2
        detector.extend()
        assert detector.extend() is None
        assert not detector.silent


@pytest.mark.parametrize(
    ("then", "now", "starved"),
    [
        (Activity(1.0, 1.0, True), Activity(1.0, 1.0, True), True),
        (Activity(1.0, 1.0, True), Activity(1.0, 1.0, False), False),
        (Activity(1.0, 1.0, False), Activity(1.0, 1.0, True), False),
        (Activity(1.0, 1.0, True), Activity(3.0, 1.0, True), False),
    ],
    ids=["waits all the time", "no more", "only now", "computes"],
)
def test_a_wait_that_the_system_has_not_counted_yet(then, now, starved):
    assert hang_detection.doing([then], [now], 2.0).is_starved == starved


def test_of_several_processes_work_adds_up_and_the_hungriest_is_starved():
    before = [Activity(1.0, 1.0), Activity(2.0, 0.0)]
    did = hang_detection.doing(before, [Activity(1.2, 1.1), Activity(2.3, 1.6)], 2.0)
    assert did.cpu_share == pytest.approx(0.25)
    assert did.waited_share == pytest.approx(0.8)
    assert did.is_starved


WAITS = SideEvidence(cpu_share=0.1)
"""The evidence of a healthy game that waits for the other player."""


@pytest.mark.parametrize("culprit", list(MatchSide))
@pytest.mark.parametrize(
    ("shown", "why"),
    [
        (SideEvidence(exited=True), "has ended"),
        (SideEvidence(stopped=True), "is stopped"),
        (SideEvidence(stopped=True, unread=True), "is stopped"),
        (SideEvidence(unread=True), "does not read"),
        (SideEvidence(unread=True, cpu_share=1.0), "does not read"),
        (SideEvidence(cpu_share=0.9), "computes"),
        (SideEvidence(cpu_share=0.0), "uses no CPU time"),
    ],
)
def test_the_one_with_a_sign(culprit, shown, why):
    other = MatchSide.GUEST if culprit is MatchSide.HOST else MatchSide.HOST
    sides, said = judge({culprit: shown, other: WAITS})
    assert sides == (culprit,)
    assert why in said


@pytest.mark.parametrize("culprit", list(MatchSide))
def test_the_one_that_has_not_answered(culprit):
    """The game that has not answered is blamed, whatever signs the other game shows."""
    other = MatchSide.GUEST if culprit is MatchSide.HOST else MatchSide.HOST
    answered = SideEvidence(answered=True, stopped=True, unread=True)
    assert judge({culprit: WAITS, other: answered})[0] == (culprit,)


def test_the_graver_sign_counts():
    assert judge(
        {MatchSide.HOST: SideEvidence(unread=True), MatchSide.GUEST: SideEvidence(stopped=True)}
    )[0] == (MatchSide.GUEST,)


@pytest.mark.parametrize(
    "both",
    [WAITS, SideEvidence(), SideEvidence(stopped=True, unread=True), SideEvidence(cpu_share=1.0)],
)
def test_both_if_nothing_tells_them_apart(both):
    sides, _ = judge({MatchSide.HOST: both, MatchSide.GUEST: both})
    assert sides == (MatchSide.HOST, MatchSide.GUEST)


def test_a_game_that_is_idle_in_the_wait_is_not_to_blame():
    """An idle game waits for the other player; the stand-in uses no CPU time in such a wait."""
    seen = {MatchSide.HOST: SideEvidence(cpu_share=0.99), MatchSide.GUEST: SideEvidence()}
    assert judge(seen)[0] == (MatchSide.HOST,)


# ---- CPU time for a loop -------------------------------------------------------------------------


class Playing:
    """A game whose loops each cost a given CPU time."""

    def __init__(self) -> None:
        self.cost = LoopCost()
        self._cpu_s, self._loops, self._now_s = 3.0, 0, 0.0

    def play(self, episodes: int, s_per_loop: float, loops: int = 1000) -> float | None:
        for _ in range(episodes):
            self._now_s += 1.0
            self._cpu_s += s_per_loop * loops
            self._loops += loops
            self.cost.count_episode()
            if self.cost.is_due(self._now_s):
                self.cost.note(self._cpu_s, self._loops, self._now_s)
        return self.cost.growth


def test_the_launch_does_not_count_and_two_comparisons_are_needed():
    playing = Playing()
    assert playing.play(1 + 4 + 4, 0.001) is None
    assert playing.play(4, 0.001) == 1.0


def test_loops_that_cost_twice_as_much():
    playing = Playing()
    playing.play(13, 0.001)
    assert playing.play(4, 0.002) == 1.0, "once may be chance"
    assert playing.play(4, 0.002) == 2.0


def test_shorter_episodes_are_no_slowdown():
    playing = Playing()
    playing.play(9, 0.001)
    assert playing.play(40, 0.001, loops=200) == pytest.approx(1.0)


def test_little_cpu_time_says_nothing():
    playing = Playing()
    assert playing.play(100, 0.000_001) is None


def test_it_is_not_read_more_often_than_needed():
    cost = LoopCost()
    assert cost.is_due(10.0)
    cost.note(1.0, 100, 10.0)
    assert not cost.is_due(10.1)
    assert cost.is_due(10.6)


def test_loops_of_all_games_of_a_process():
    loops = LoopCount()
    loops.created()
    loops.play(100)
    loops.play(50, simulation_loop=150)
    loops.created()
    loops.play(30)
    assert loops.in_all == 180
