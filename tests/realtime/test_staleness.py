"""Data four rollouts old: the decoupled loss learns from it, the shortcut does not."""

from __future__ import annotations

from statistics import mean

import pytest
import torch as th
from staleness import mean_return

RANDOM = 22.0
"""What a policy returns that has learned nothing."""


@pytest.fixture(autouse=True)
def one_thread():
    """So small a network gains nothing from more, and loses much where others want the cores."""
    threads = th.get_num_threads()
    th.set_num_threads(1)
    yield
    th.set_num_threads(threads)


def returns(loss: str) -> float:
    return mean(mean_return(loss, lag=4, seed=seed, steps=60_000) for seed in (0, 1))


def test_decoupled_learns_and_recomputing_the_old_log_probs_alone_does_not():
    decoupled = returns("decoupled")
    recomputed = returns("recomputed")
    assert decoupled > 3 * RANDOM
    assert decoupled > 1.5 * recomputed
