"""On data four rollouts old, the decoupled loss learns; recomputed log-probs alone do not."""

from __future__ import annotations

from statistics import mean

import pytest
import torch as th
from studies.staleness import mean_return

RANDOM = 22.0
"""Mean return of a random policy."""


@pytest.fixture(autouse=True)
def one_thread():
    """A small network gains nothing from more threads, and loses much on a busy machine."""
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
