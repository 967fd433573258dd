"""Several pools' curves as those of one."""

from __future__ import annotations

from sc2pool.ray.curves import merge_curves

OLD = {
    "at_s": [0.0, 1.0, 2.0],
    "steps": [0, 10, 20],
    "figures": {"steps/s": [None, 10.0, 10.0], "mean return": [None, None, 4.0]},
}
YOUNG = {
    "at_s": [0.0, 1.0],
    "steps": [0, 30],
    "figures": {"steps/s": [None, 30.0], "mean return": [None, 2.0], "loss": [0.5, 0.25]},
}


def test_one_pool_keeps_its_curves() -> None:
    assert merge_curves([(2.0, OLD)]) == OLD


def test_the_younger_pool_begins_later_on_the_axis_of_the_oldest() -> None:
    merged = merge_curves([(1.0, YOUNG), (2.0, OLD)])
    assert merged["at_s"] == [0.0, 1.0, 2.0]
    assert merged["steps"] == [0, 10, 50]
    assert merged["figures"] == {
        "steps/s": [None, 10.0, 40.0],
        "mean return": [None, None, 3.0],
        "loss": [None, 0.5, 0.25],
    }
