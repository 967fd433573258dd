"""A cluster's batches, joined from those of its nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from sc2pool.pool.batch import Batch
from sc2pool.pool.queues.layout import space_layout
from sc2pool.ray.batches import together, truncation

BOX = spaces.Box(-1, 1, (2,), np.float32)
PAIR = spaces.Dict({"a": BOX, "b": spaces.Discrete(5)})
TEXT = spaces.Text(4)


def batch(observations: Any, *rewards: float) -> Batch:
    n = len(rewards)
    rows = np.array(rewards)
    for array in (rows, *(observations.values() if isinstance(observations, dict) else ())):
        array.flags.writeable = False  # as in Ray's arrays
    return Batch(
        np.arange(n),
        observations,
        rows,
        np.zeros(n, np.bool_),
        np.zeros(n, np.bool_),
        [{"row": reward} for reward in rewards],
        [None] * n,
        [{"began": reward} for reward in rewards],
    )


def values(first: int, n: int) -> dict[str, Any]:
    a = np.arange(first, first + 2 * n, dtype=np.float32).reshape(n, 2)
    return {"a": a, "b": np.arange(first, first + n)}


def test_rows_are_in_the_order_of_the_nodes() -> None:
    one = together(space_layout(PAIR, 0), [batch(values(0, 2), 1, 2), batch(values(7, 1), 3)])
    assert one.envs.tolist() == [0, 1, 2]
    assert one.rewards.tolist() == [1, 2, 3]
    assert one.observations["a"].tolist() == [[0, 1], [2, 3], [7, 8]]
    assert one.observations["b"].tolist() == [0, 1, 7]
    assert [info["row"] for info in one.infos] == [1, 2, 3]
    one.observations["a"][:] = one.rewards[:] = 0  # the batch shares no memory with Ray's


def test_observations_without_fixed_layout_stay_a_tuple() -> None:
    layout = space_layout(TEXT, 0)
    assert together(layout, [batch(("a", "b"), 1, 2), batch(("c",), 3)]).observations == (
        "a",
        "b",
        "c",
    )


@pytest.mark.parametrize(
    ("space", "last", "first"),
    [
        (BOX, np.ones((2, 2), np.float32), np.zeros((2, 2), np.float32)),
        (PAIR, values(5, 2), values(0, 2)),
        (TEXT, ("x", "y"), ("a", "b")),
    ],
    ids=["Box", "Dict", "Text"],
)
def test_a_dead_node_is_a_truncation_in_each_row(space: Any, last: Any, first: Any) -> None:
    made = truncation(
        space_layout(space, 0), batch(last, 1, 2), batch(first, 3, 4), {"kind": "node-lost"}
    )
    assert made.truncated.all()
    assert not made.terminated.any()
    assert made.rewards.tolist() == [0, 0]
    assert made.observations is first
    assert made.reset_infos == [{"began": 3}, {"began": 4}]
    for row, info in enumerate(made.infos):
        assert info == {"sc2pool.synthetic": True, "sc2pool.fault": {"kind": "node-lost"}}
        final = made.final_observations[row]
        if isinstance(last, dict):
            assert final["a"].tolist() == last["a"][row].tolist()
            assert final["b"] == last["b"][row]
        else:
            assert np.array_equal(final, last[row])
