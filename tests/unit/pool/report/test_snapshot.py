"""The state of a pool, read by one thread while another changes it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from sc2pool.errors import Fault, FaultKind, Phase
from sc2pool.pool.instances.seats import Seat, exchange
from sc2pool.pool.report.snapshot import RATE_WINDOW_S, Rates, finite, seated
from sc2pool.pool.report.stats import Stats


@contextmanager
def meanwhile(change: Callable[[int], None]) -> Iterator[None]:
    """Another thread changes things all the time; what it raises is raised here."""
    over = threading.Event()
    raised: list[BaseException] = []

    def run() -> None:
        turn = 0
        try:
            while not over.is_set():
                change(turn)
                turn += 1
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # so that they meet in the middle of things
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        sys.setswitchinterval(interval_s)
    assert raised == []


def test_counters_are_read_whole_while_they_are_counted():
    stats = Stats()

    def count(turn: int) -> None:
        if turn < 2000:
            stats.count_reset(f"rung {turn}", 1.0)  # the dict grows under the reader
        stats.count_fault(f"env {turn % 500}", turn, Fault(FaultKind.HUNG, Phase.IDLE, "detail"))
        stats.count_recycle(f"env {turn % 500}", turn, "age")
        stats.count_recovery(1.0)

    with meanwhile(count):
        while stats.resets < 2000:
            told = stats.as_dict()
            assert told["resets"] == len(told["reset_s"])
            # A fault and the soft recycle after it are two counts, one apart at most.
            causes = told["recycles"]
            assert 0 <= causes.get("hung", 0) - causes.get("soft-age", 0) <= 1
            assert len(told["events"]) == min(1000, sum(causes.values()))
            seats = stats.recycles_by_seat()
            assert sum(map(len, seats.values())) <= 1000


@pytest.fixture
def seats() -> list[Seat]:
    made = []
    for index in range(4):
        instance = SimpleNamespace(number=index)
        made.append(Seat(index, index == 3, b"", instance))
        made[-1].take(instance)
    return made


def test_no_instance_is_seen_on_two_seats(seats):
    def play(turn: int) -> None:
        sum(range(50))  # an episode, brief as it is
        exchange(seats[turn % 3], seats[3])

    with meanwhile(play):
        for _ in range(20_000):
            numbers = [instance.number for _, instance in seated(seats)]
            assert sorted(numbers) == [0, 1, 2, 3]


def test_an_exchange_left_half_done_does_not_hang_the_reader(seats):
    seats[0].take(seats[3].instance)  # and here Ctrl-C struck
    assert [instance.number for _, instance in seated(seats)] == [3, 1, 2, 3]


def test_rates_are_those_of_the_newest_seconds():
    rates = Rates()
    rates.note(0.0, {"steps": 0})
    assert rates.per_s("steps") is None
    for second in range(1, 21):
        rates.note(float(second), {"steps": 10 * min(second, 10) + 100 * max(0, second - 10)})
    assert rates.per_s("steps") == pytest.approx(100)
    assert rates.per_s("other") is None


def test_a_counter_that_is_new_or_gone_has_the_rate_of_its_own_time():
    rates = Rates()
    rates.note(0.0, {"old": 0})
    rates.note(1.0, {"old": 5, "new": 100})
    assert rates.per_s("new") is None
    rates.note(2.0, {"new": 130})
    assert rates.per_s("new") == pytest.approx(30)
    assert rates.per_s("old") is None


def test_rates_remember_no_more_than_they_need():
    rates = Rates()
    for second in range(1000):
        rates.note(float(second), {"steps": second})
    assert len(rates._noted) <= RATE_WINDOW_S + 2


def test_rates_after_a_gap():
    """A look that came late, as after Ctrl-Z, still has one before it to be compared with."""
    rates = Rates()
    rates.note(0.0, {"steps": 0})
    rates.note(1.0, {"steps": 10})
    rates.note(3600.0, {"steps": 20})
    assert rates.per_s("steps") == pytest.approx(10 / 3599)


def test_json_has_no_nan():
    assert [finite(value) for value in (1.5, float("nan"), float("inf"))] == [1.5, None, None]
