"""Tests the life of an instance: its states, its worker's end, and its replacement."""

from __future__ import annotations

import threading
from dataclasses import replace
from itertools import product

import psutil
import pytest

from sc2pool.config import RestartPolicy
from sc2pool.deadline import Deadline
from sc2pool.errors import Fault, FaultKind, Phase
from sc2pool.platform import WINDOWS
from sc2pool.pool.instances.restart import (
    Housemate,
    backoff_s,
    charged,
    hopeless,
    restarts_exceeded,
    unplayable,
)
from sc2pool.pool.instances.states import LIVE, TRANSITIONS, Event, State, advance
from sc2pool.pool.instances.workers import WorkerProcess
from tests.support.programs import has_ended
from tests.support.systems import SLEEPS, start_group

# ---- the table of states -------------------------------------------------------------------------


GONE = {State.DEAD, State.FAILED, State.CLOSED}


@pytest.mark.parametrize(
    ("state", "moving", "stopped", "going_on"),
    [
        (State.PLAYING, State.PAUSING, State.PAUSED, State.RESUMING),
        (State.READY, State.HOLDING, State.HELD, State.RELEASING),
    ],
)
def test_a_pause_may_fail_and_may_be_taken_back(state, moving, stopped, going_on):
    assert advance(state, Event.PAUSE) is moving
    assert advance(moving, Event.NOT_PAUSED) is state
    assert advance(moving, Event.PAUSED) is stopped
    for before in (moving, stopped):
        assert advance(before, Event.RESUME) is going_on
    for late in (Event.PAUSED, Event.NOT_PAUSED):
        assert advance(going_on, late) is going_on, "what the worker says of the pause comes late"
    assert advance(going_on, Event.RESUMED) is state


def test_a_state_is_live_or_gone():
    assert set(State) == LIVE | GONE
    assert not LIVE & GONE


@pytest.mark.parametrize(
    ("event", "states", "after"),
    [
        (
            Event.RESET,
            {State.IDLE, State.RESETTING, State.READY, State.PLAYING, State.OVER},
            State.RESETTING,
        ),
        (Event.FAULT, LIVE, State.DEAD),
        (Event.RECYCLE, LIVE, State.DEAD),
        (Event.CLOSE, State, State.CLOSED),
    ],
)
def test_events_of_many_states(event, states, after):
    assert {advance(state, event) for state in states} == {after}


def test_nothing_comes_back_from_the_dead():
    for (state, _), after in TRANSITIONS.items():
        if state in GONE:
            assert after in GONE


def test_every_state_can_be_reached_and_every_event_happens():
    reached = {State.NEW}
    for _ in State:
        reached |= {after for (state, _), after in TRANSITIONS.items() if state in reached}
    assert reached == set(State)
    assert {event for _, event in TRANSITIONS} == set(Event)


def test_events_outside_the_table_raise():
    missing = set(product(State, Event)) - set(TRANSITIONS)
    assert (State.NEW, Event.STEP) in missing
    for state, event in missing:
        with pytest.raises(AssertionError, match=f"no transition from {state} on {event}"):
            advance(state, event)


# ---- the end of a worker -------------------------------------------------------------------------


STARTS = "import subprocess; game = subprocess.Popen({}); print(game.pid, flush=True)"
has_signals = pytest.mark.skipif(WINDOWS, reason="a process has an exit code alone")


def started(program: str) -> tuple[WorkerProcess, bytes]:
    """A worker that runs this program, and the first line that the program prints."""
    group = start_group(program)
    with group.process.stdout as told:
        line = told.readline()
    return WorkerProcess(group), line


def test_its_game_ends_with_it(wait_for):
    worker, pid = started(f"{STARTS.format(SLEEPS)}; game.wait()")
    game = psutil.Process(int(pid))
    worker.end()
    assert worker.how_it_ended() == ("exited with status 1" if WINDOWS else "was killed by SIGKILL")
    wait_for(lambda: has_ended(game))
    worker.end()


def test_children_left_by_a_worker_are_ended(wait_for):
    worker, pid = started(STARTS.format(SLEEPS))
    left = psutil.Process(int(pid))
    worker.wait(Deadline.after(5.0), threading.Event())
    assert left.is_running()
    worker.end()
    assert worker.how_it_ended() == "exited with status 0"
    wait_for(lambda: has_ended(left))


@pytest.mark.parametrize(
    ("program", "words", "from_outside"),
    [
        ("raise SystemExit(3)", "status 3", False),
        pytest.param("import os; os.kill(os.getpid(), 15)", "SIGTERM", True, marks=has_signals),
        pytest.param("import os; os.kill(os.getpid(), 40)", "by 40", False, marks=has_signals),
    ],
)
def test_how_it_ended_by_itself(program, words, from_outside):
    worker, _ = started(program)
    worker.wait(Deadline.after(5.0), threading.Event())
    worker.end()
    assert words in worker.how_it_ended()
    assert worker.was_killed == from_outside


def test_it_may_not_have_ended():
    worker, _ = started("print(flush=True); import time; time.sleep(60)")
    worker.wait(Deadline.after(0.05), threading.Event())
    assert "could not be reaped" in worker.how_it_ended()
    worker.end()


# ---- replacement, or the end of the pool ---------------------------------------------------------


POLICY = RestartPolicy(per_env=2, per_env_window_s=60, per_pool_per_env=3, per_pool_window_s=600)
NOW_S = 10_000.0


@pytest.mark.parametrize(
    ("ages_of_env_s", "ages_in_pool_s", "told"),
    [
        ([0], [0], None),
        ([0, 10], [0, 10], None),
        ([0, 10, 59], [0, 10, 59], "3 failures of one env in 60 s"),
        ([0, 10, 60], [0, 10, 60], None),
        ([0], [1] * 6, None),
        ([0], [1] * 7, "7 failures of the pool in 600 s"),
        ([0], [1] * 6 + [600], None),
    ],
)
def test_intensity(ages_of_env_s, ages_in_pool_s, told):
    env, pool = ([NOW_S - age for age in ages] for ages in (ages_of_env_s, ages_in_pool_s))
    assert restarts_exceeded(POLICY, 2, env, pool, NOW_S) == told


def failed(detail: str, kind: FaultKind = FaultKind.LAUNCH_FAILED) -> Fault:
    return Fault(kind, Phase.LAUNCHING, detail)


@pytest.mark.parametrize(
    ("causes", "any_was_ready", "is_hopeless"),
    [
        ([], False, False),
        ([failed("no library")], False, False),
        ([failed("no library"), failed("no library")], False, True),
        ([failed("port"), failed("no library"), failed("no library")], False, True),
        ([failed("no library"), failed("port")], False, False),
        ([failed("no library"), failed("no library")], True, False),
        ([failed("SIGKILL", FaultKind.GAME_EXITED)] * 2, False, False),
        ([replace(failed("no descriptors"), refused=True)] * 2, False, False),
    ],
)
def test_the_same_failure_twice_before_any_observation_is_hopeless(
    causes, any_was_ready, is_hopeless
):
    assert bool(hopeless(causes, any_was_ready=any_was_ready)) is is_hopeless


def test_backoff_grows_to_eight_seconds_and_is_forgotten_with_the_window():
    waits = [backoff_s(POLICY, [NOW_S] * number, NOW_S) for number in range(9)]
    assert waits == [0, 0, 0.5, 1, 2, 4, 8, 8, 8]
    assert backoff_s(POLICY, [NOW_S - 60] * 5 + [NOW_S], NOW_S) == 0


def test_a_refusal_of_the_system_is_never_tried_again_at_once():
    waits = [backoff_s(POLICY, [NOW_S] * number, NOW_S, refused=True) for number in range(1, 4)]
    assert waits == [0.25, 0.5, 1]


@pytest.mark.parametrize(
    ("housemates", "killed", "expected"),
    [
        ([Housemate(5, 2, False, True), Housemate(6, 1, False, True)], True, 6),
        ([Housemate(5, 2, False, True), Housemate(6, 1, False, True)], False, 5),
        ([Housemate(5, 2, False, False), Housemate(6, 1, False, True)], False, 6),
        ([Housemate(5, 2, False, True), Housemate(6, 1, True, True)], False, 6),
        ([Housemate(5, 0, False, False), Housemate(6, 0, False, False)], False, 5),
    ],
)
def test_a_workers_death_counts_as_the_failure_of_one_instance(housemates, killed, expected):
    assert charged(housemates, killed=killed) == expected


NOTE = "map Odd; game version 4.10"
REFUSED = Fault(FaultKind.SETUP_FAILED, Phase.RESETTING, "no such map", map_note=NOTE)
CRASHED = Fault(FaultKind.GAME_EXITED, Phase.RESETTING, "signal SIGSEGV", map_note=NOTE)


@pytest.mark.parametrize(
    ("failed_in_a_row", "fault", "any_was_ready", "is_final"),
    [
        (1, REFUSED, False, False),
        (2, REFUSED, False, True),
        (2, REFUSED, True, True),
        (2, CRASHED, False, True),
        (2, CRASHED, True, False),
        (2, replace(CRASHED, map_note=""), False, False),
    ],
)
def test_a_map_is_unplayable_if_two_processes_in_a_row_fail_on_it(
    failed_in_a_row, fault, any_was_ready, is_final
):
    why = unplayable(failed_in_a_row, fault, any_was_ready)
    assert (why is not None) == is_final
    assert not is_final or (fault.detail in why and NOTE in why)
