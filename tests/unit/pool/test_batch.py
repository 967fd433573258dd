"""Tests the reading of outcomes and batches from slots, and delays that align real-time games."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from sc2pool.errors import Fault, FaultKind, Phase
from sc2pool.pool.batch import (
    Gatherer,
    fault_info,
    real_outcome,
    synthetic_outcome,
)
from sc2pool.pool.instances.seats import FaultReport
from sc2pool.pool.queues.layout import space_layout
from sc2pool.pool.stepping import Alignment

SPACE = spaces.Dict(a=spaces.Box(-10, 10, (2,), np.float32), b=spaces.Discrete(9))
UNFIXED = spaces.Text(5)
REPORT = FaultReport(Fault(FaultKind.HUNG, Phase.STEPPING, "silent"), 4, 0.0, "/report")


def value(number: int) -> dict:
    return {"a": np.full(2, number, np.float32), "b": np.int64(number)}


def test_a_plain_reply_is_no_outcome(pair):
    queue = pair(SPACE).answer(value(3), 1.5)
    assert real_outcome(queue, queue.reply()) is None


def test_a_real_outcome_without_fixed_layout_comes_out_of_band(pair):
    queue = pair(UNFIXED).answer("hello", ended=(True, False))
    outcome = real_outcome(queue, queue.reply())
    assert (outcome.observation, outcome.final_observations[0]) == ("hello", "hello")


def test_a_fault_in_an_info_is_plain_data():
    shown = fault_info(REPORT)
    assert shown.pop("recovery_s") > 0.0
    assert shown == {
        "kind": "hung",
        "phase": "stepping",
        "detail": "silent",
        "instance": 4,
        "fault_report": "/report",
    }
    assert type(shown["kind"]) is str


@pytest.mark.parametrize("rows", [[0, 1, 2], [2, 0, 1]], ids=str)
def test_both_paths_gather_the_same(pair, rows):
    queues = [pair(SPACE).answer(value(number), number / 2) for number in range(3)]
    queues = [queues[row] for row in rows]
    general, fast = (Gatherer(space_layout(SPACE, 0), 3) for _ in range(2))
    expected = general.gather(range(3), queues, [None] * 3)
    pair.slots.arrange(rows)
    given = fast.gather_plain(pair.slots.batch)
    for name in vars(expected):
        np.testing.assert_equal(getattr(given, name), getattr(expected, name), err_msg=name)
        assert type(getattr(given, name)) is type(getattr(expected, name))
    assert given.observations["b"].base is None, "nothing of the slots"


@pytest.mark.parametrize("rows", [[0, 1, 2], [2, 0, 1]], ids=str)
def test_the_fast_path_takes_each_row_from_the_place_of_its_newest_answer(pair, rows):
    """The envs' newest requests have different numbers, of which some are odd and some are even."""
    pairs = [pair(SPACE) for _ in range(3)]
    for number, one in enumerate(pairs):
        for _ in range(number + 1):
            one.answer(value(8))
    pair.slots.arrange(rows)
    gatherer = Gatherer(space_layout(SPACE, 0), 3)
    for turn in range(3):
        pair.slots.batch.send(np.zeros(3, np.int64))
        for number, one in enumerate(pairs):
            one.answer_newest(value(number + turn))
        batch = gatherer.gather_plain(pair.slots.batch)
        assert batch.observations["b"].tolist() == [row + turn for row in rows]


@pytest.mark.parametrize("unanswered", [False, True])
def test_a_dead_envs_last_observation_survives_edits_of_the_batch(pair, unanswered):
    """The env is like that of `SC2GymEnv`: the pool does not reset it by itself."""
    alive, dead = pair(SPACE), pair(SPACE)
    gatherer = Gatherer(space_layout(SPACE, 0), 2)
    queues = [alive.answer(value(5)), dead.answer(value(6))]
    given = gatherer.gather([0, 1], queues, [None, None])
    for array in given.observations.values():
        array[...] = 9  # the trainer may write into its array
    if unanswered:
        dead.write_half(value(7))
        dead.trainer.void()
    dead.trainer.close()
    alive.answer(value(7))
    for _ in range(2):
        outcome = synthetic_outcome(REPORT, dead.trainer, space_layout(SPACE, 0))
        batch = gatherer.gather([0, 1], queues, [None, outcome])
        assert batch.observations["b"].tolist() == [7, 6]
        for array in batch.observations.values():
            array[...] = 9
        np.testing.assert_equal(batch.final_observations[1], value(6))
        batch.final_observations[1]["a"][...] = 9
        assert gatherer.newest(queues)["b"].tolist() == [7, 6]


def test_observations_without_fixed_layout_are_a_tuple(pair):
    queues = [pair(UNFIXED).answer(word) for word in ("one", "two")]
    gatherer = Gatherer(space_layout(UNFIXED, 0), 2)
    outcomes = [real_outcome(queue, queue.reply()) for queue in queues]
    batch = gatherer.gather([0, 1], queues, outcomes)
    assert batch.observations == ("one", "two")
    assert gatherer.row(batch, 1) == "two"
    assert gatherer.newest(queues) == ("one", "two")


def test_an_observation_without_fixed_layout_is_handed_out_as_a_new_object(pair):
    queue = pair(spaces.Sequence(spaces.Box(0, 9))).answer((np.zeros(1, np.float32),))
    outcome = real_outcome(queue, queue.reply())
    outcome.observation[0][...] = -7
    for _ in range(2):
        last = synthetic_outcome(REPORT, queue, space_layout(UNFIXED, 0))
        for shown in (last.observation, last.final_observations[0]):
            assert shown[0].tolist() == [0.0]
            shown[0][...] = -7


# ---- alignment in real time ----------------------------------------------------------------------


PACE = 10.0
"""The speed of a game in loops per second."""


@pytest.fixture
def alignment() -> Alignment:
    return Alignment(PACE)


def test_an_env_that_is_always_early_is_delayed_by_whole_loops(alignment):
    for _ in range(3):
        assert alignment.delays_loops() is None, "one batch says nothing, nor do two"
        alignment.note([0.0, 0.25, 0.15])
    assert alignment.delays_loops() == [0, 2, 1]
    assert alignment.delays_loops() is None, "once"


@pytest.mark.parametrize(
    "gaps_s",
    [
        pytest.param([[0.0, 0.3], [0.0, 0.0], [0.3, 0.0]], id="one slow answer of each"),
        pytest.param([[0.5, 0.5]] * 3, id="a slow policy is late for all"),
        pytest.param([[0.0, 0.3], [0.0, 0.3], None, [0.0, 0.3]], id="before an episode"),
    ],
)
def test_gaps_that_delay_no_env(alignment, gaps_s):
    for gaps in gaps_s:
        alignment.note(gaps)
    assert alignment.delays_loops() is None
