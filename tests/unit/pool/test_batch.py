"""Outcomes and batches, out of real slots."""

from __future__ import annotations

import mmap
from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium import spaces

from sc2pool.errors import Fault, FaultKind, Phase
from sc2pool.pool.batch import (
    Gatherer,
    Outcome,
    begin_episode,
    fault_info,
    outcome_of,
    synthetic_outcome,
)
from sc2pool.pool.instances.seats import FaultReport, Seat
from sc2pool.pool.ipc.doorbell import Doorbell
from sc2pool.pool.ipc.layout import slot_layout, space_layout
from sc2pool.pool.ipc.slot import TERMINATED, TRUNCATED, Slot
from sc2pool.pool.ipc.trainer_end import TrainerEnd
from sc2pool.pool.worker.worker_end import WorkerEnd
from sc2pool.tasks.queue_pair import Transition

SPACE = spaces.Dict(a=spaces.Box(-10, 10, (2,), np.float32), b=spaces.Discrete(9))
UNFIXED = spaces.Text(5)
REPORT = FaultReport(Fault(FaultKind.HUNG, Phase.STEPPING, "silent"), 4, 0.0, "/report")


def value(number: int) -> dict:
    return {"a": np.full(2, number, np.float32), "b": np.int64(number)}


class Answering:
    """An instance as a batch reads it: its end of a real slot, and what came aside."""

    def __init__(self, space: spaces.Space) -> None:
        layout = slot_layout(space, spaces.Discrete(2))
        slot = Slot(mmap.mmap(-1, layout.size_bytes), layout)
        self.bells = Doorbell.create(), Doorbell.create()
        self.end = TrainerEnd(slot, self.bells[0])
        self.aside = (None, {})
        self._worker = WorkerEnd(
            slot,
            *self.bells,
            strict=True,
            send_aside=lambda *_: None,
            rung=lambda: "reset",
            recycle_due=lambda: False,
        )

    def answer(self, observation, reward=0.0, terminated=False, truncated=False) -> None:
        self._worker.begin(self.end.next_sequence())
        self._worker.put(
            Transition(observation, reward, terminated, truncated, self.aside[1], None)
        )

    def opened_aside(self):
        return self.aside


@pytest.fixture
def seat_with():
    """Makes an env's seat with an instance that has a slot for this space."""
    instances = []

    def make(space=SPACE, index=0) -> Seat:
        instance = Answering(space)
        instances.append(instance)
        return Seat(index, False, b"", instance, source=instance)

    yield make
    for instance in instances:
        for bell in instance.bells:
            bell.close()


@pytest.mark.parametrize("flags", [0, TERMINATED, TRUNCATED, TERMINATED | TRUNCATED])
def test_a_real_outcome(seat_with, flags):
    seat = seat_with()
    seat.instance.aside = (None, {"step": "info"})
    seat.instance.answer(value(3), 1.5, bool(flags & TERMINATED), bool(flags & TRUNCATED))
    outcome = outcome_of(seat, space_layout(SPACE, 0))
    assert (outcome.reward, outcome.info, outcome.report) == (1.5, {"step": "info"}, None)
    assert (outcome.terminated, outcome.truncated) == (bool(flags & 1), bool(flags & 2))
    assert outcome.over == bool(flags)
    if flags:
        np.testing.assert_equal(outcome.final_observation, value(3))
        seat.instance.answer(value(4))
        np.testing.assert_equal(outcome.final_observation, value(3))  # it is a copy
    else:
        assert outcome.final_observation is None


def test_a_real_outcome_without_fixed_layout_comes_aside(seat_with):
    seat = seat_with(UNFIXED)
    seat.instance.aside = ("hello", {})
    seat.instance.answer(None, terminated=True)
    outcome = outcome_of(seat, space_layout(UNFIXED, 0))
    assert (outcome.aside, outcome.final_observation) == ("hello", "hello")


def test_a_synthetic_outcome_is_a_marked_truncation(seat_with):
    seat = seat_with()
    seat.fault = REPORT
    outcome = synthetic_outcome(seat, "last")
    assert (outcome.reward, outcome.terminated, outcome.truncated) == (0.0, False, True)
    assert outcome.final_observation == "last"
    assert outcome.info["sc2pool.synthetic"] is True
    assert outcome.info["sc2pool.fault"]["kind"] == "hung"
    assert outcome.report is REPORT
    assert (seat.fault, seat.source) == (None, None), "told once"


def test_no_answer_without_a_fault_is_a_defect(seat_with):
    with pytest.raises(AssertionError, match="no fault that explains it"):
        synthetic_outcome(seat_with(), None)


def test_a_fault_in_an_info_is_plain_data():
    told = fault_info(REPORT)
    assert told.pop("recovery_s") > 0.0
    assert told == {
        "kind": "hung",
        "phase": "stepping",
        "detail": "silent",
        "instance": 4,
        "fault_report": "/report",
    }
    assert type(told["kind"]) is str


def test_what_failed_while_an_episode_began_stands_in_its_reset_info(seat_with):
    seat = seat_with()
    seat.instance.aside = (None, {"reset": "info"})
    seat.instance.answer(value(1))
    outcome = Outcome()
    begin_episode(seat, outcome)
    assert outcome.reset_info == {"reset": "info"}
    seat.fault = REPORT
    seat.instance.aside = (None, {})
    begin_episode(seat, outcome)
    assert outcome.reset_info["sc2pool.fault"]["kind"] == "hung"
    assert seat.fault is None


def test_rows_belong_to_the_envs_that_are_gathered(seat_with):
    seats = [seat_with(index=index) for index in range(3)]
    gatherer = Gatherer(space_layout(SPACE, 0), 3)
    for number, seat in enumerate(seats):
        seat.instance.answer(value(number))
    batch = gatherer.gather([seats[0], seats[2]], [Outcome(reward=1), Outcome(reward=2)])
    assert batch.envs.tolist() == [0, 2]
    assert batch.observations["b"].tolist() == [0, 2]
    assert batch.observations["a"].dtype == np.float32
    assert batch.rewards.tolist() == [1, 2]
    assert batch.rewards.dtype == np.float64
    np.testing.assert_equal(gatherer.row(batch, 1), value(2))
    np.testing.assert_equal(gatherer.last_observation(2), value(2))
    with pytest.raises(AssertionError, match="no batch has shown"):
        gatherer.last_observation(1)


def test_a_batch_is_never_written_again(seat_with):
    seat = seat_with()
    gatherer = Gatherer(space_layout(SPACE, 0), 1)
    seat.instance.answer(value(1))
    first = gatherer.gather([seat], [Outcome()])
    seat.instance.answer(value(2))
    second = gatherer.gather([seat], [Outcome()])
    assert (first.observations["b"].tolist(), second.observations["b"].tolist()) == ([1], [2])
    row = gatherer.last_observation(0)
    row["a"][:] = 9
    np.testing.assert_equal(gatherer.last_observation(0), value(2))


def test_the_last_good_row_is_repeated_where_nothing_new_can_come(seat_with):
    """An env that died and is not reset by the pool (`SC2GymEnv`)."""
    seats = [seat_with(index=index) for index in range(2)]
    gatherer = Gatherer(space_layout(SPACE, 0), 2)
    for number, seat in enumerate(seats, start=5):
        seat.instance.answer(value(number))
    gatherer.gather(seats, [Outcome(), Outcome()])
    seats[1].source = None
    seats[0].instance.answer(value(7))
    for _ in range(2):
        batch = gatherer.gather(seats, [Outcome(), Outcome(truncated=True)])
        assert batch.observations["b"].tolist() == [7, 6]
        np.testing.assert_equal(gatherer.last_observation(1), value(6))


def test_observations_without_fixed_layout_are_a_tuple():
    gatherer = Gatherer(space_layout(UNFIXED, 0), 2)
    seats = [Seat(index, False, b"", SimpleNamespace()) for index in range(2)]
    batch = gatherer.gather(seats, [Outcome(aside="one"), Outcome(aside="two")])
    assert batch.observations == ("one", "two")
    assert gatherer.row(batch, 1) == "two"
    assert gatherer.last_observation(0) == "one"
