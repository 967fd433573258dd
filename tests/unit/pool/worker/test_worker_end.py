"""What is put is the same with and without the compiled step path, which takes what is plain.

`tests/unit/pool/queues/test_slots.py` tests this end together with the trainer's.
"""

from __future__ import annotations

import gc

import numpy as np
import pytest
from gymnasium import spaces

from sc2pool.errors import ObservationError, UserCodeError
from sc2pool.protocol import compiled
from sc2pool.tasks.queue_pair import Transition
from tests.support.fuzz.transitions import Putting, compare, count_taken
from tests.unit.conftest import needs_compiled

VECTOR = spaces.Box(-9, 9, (2,), np.float32)
HERE = np.array([1, 2], np.float32)


@needs_compiled
@pytest.mark.parametrize("seed", range(4))
def test_transitions_of_all_kinds(seed):
    found, verdicts = compare(1000, seed)
    assert found == []
    assert verdicts["accepted"] > 50
    assert verdicts["left"] > 300


def put(transition: Transition, space=VECTOR, *, strict=True) -> tuple[int, str | None]:
    """How many of a first transition and this one the compiled path takes, and the error."""
    putting = Putting(space, strict=strict)
    taken = count_taken(putting.end)
    putting.request(reset=True)
    error, *_ = putting.put(Transition(space.sample(), 0.0, False, False, {}))
    assert error is None
    putting.request(reset=False)
    error, *_ = putting.put(transition)
    return taken.total(), error


@needs_compiled
@pytest.mark.parametrize(
    ("dtype", "shape"),
    [(np.float32, (5,)), (np.float64, ()), (np.uint8, (4, 4, 3)), (np.int64, (2,)), (bool, (3,))],
)
@pytest.mark.parametrize("mask", [None, np.array([True, False, True])], ids=["", "mask"])
def test_plain_transitions_are_taken(dtype, shape, mask):
    space = spaces.Box(0, 1, shape, dtype)
    of_a_step = Transition(np.array(space.sample()), 0.5, False, False, {}, mask)
    assert put(of_a_step, space) == (1, None)


@needs_compiled
@pytest.mark.parametrize(
    "of_a_step",
    [
        Transition(HERE, 0.5, True, False, {}),
        Transition(HERE, 0.5, False, True, {}),
        Transition(HERE, 0.5, False, False, {"k": 1}),
        Transition(HERE, 1, False, False, {}),
        Transition(np.array([1, 2, 3, 4], np.float32)[::2], 0.5, False, False, {}),
    ],
    ids=["terminated", "truncated", "info", "whole reward", "not one block"],
)
def test_others_are_left_to_pure_python(of_a_step):
    assert put(of_a_step) == (0, None)


@needs_compiled
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_that_are_not_finite(number, dtype):
    space = spaces.Box(-9, 9, (70,), dtype)
    for place in (0, 35, 69):
        spoilt = space.sample()
        spoilt[place] = number
        of_a_step = Transition(spoilt, 0.5, False, False, {})
        taken, error = put(of_a_step, space)
        assert taken == 0
        assert error is not None and f"not finite at index [{place}]" in error
        assert put(of_a_step, space, strict=False) == (1, None)


OF_A_ROW = Transition(HERE, 0.0, False, False, {})
MASKED = OF_A_ROW._replace(action_masks=np.ones(3, bool))


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (
            [OF_A_ROW, OF_A_ROW._replace(observation=HERE[:1])],
            ObservationError,
            r"row 1: observation has shape \(1,\)",
        ),
        ([MASKED, OF_A_ROW], ObservationError, "row 0 and row 1 differ"),
        ([OF_A_ROW, OF_A_ROW._replace(terminated=True)], UserCodeError, "row 1 terminated=True"),
        ([OF_A_ROW], UserCodeError, "1 transitions were put, expected one for each of 2 rows"),
        (OF_A_ROW, UserCodeError, "use put_rows"),
    ],
    ids=["shape", "mask", "end", "number", "put"],
)
def test_transitions_are_checked_row_by_row(wrong, error, words):
    putting = Putting(VECTOR, strict=True, rows=2)
    putting.request(reset=True)
    put = putting.end.put_rows if isinstance(wrong, list) else putting.end.put
    with pytest.raises(error, match=words):
        put(wrong)


@needs_compiled
def test_a_row_needs_five_arrays_and_a_header_with_its_words():
    header = np.zeros(16, np.uint64)
    arrays = [array for _ in range(2) for array in (HERE.copy(), np.zeros(3, bool))]
    at = {"must_be_finite": True, "reply": 8, "flags": 9, "reward": 10, "total": 15, "masked": 8}
    compiled.fast.Row(header, *arrays, **at)
    with pytest.raises(TypeError, match="five arrays, got memoryview, ndarray, ndarray"):
        compiled.fast.Row(memoryview(header), *arrays, **at)
    for wrong in (-1, 16):
        with pytest.raises(IndexError, match="16 words"):
            compiled.fast.Row(header, *arrays, **at | {"total": wrong})


def test_the_garbage_collector_takes_it_in_any_order():
    putting = Putting(VECTOR, strict=True)
    putting.end.itself = putting.end
    del putting
    gc.collect()
