"""`VecNormalize`'s statistics, standing still for the length of a rollout.

SB3 updates them in every step. The learner reads them too, at any moment (`EvalCallback` copies
them, `CheckpointCallback` writes them), and the actor is in another thread. Rules: within a rollout
all observations are normalised alike; what is read is one state of mean, variance and count, never
parts of two; who copies or pickles them gets SB3's own class.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecNormalize


class FrozenStatistics(RunningMeanStd):
    """Running statistics that gather what they are given, and take it in when they are told."""

    def __init__(self, running: RunningMeanStd) -> None:
        self._lock = threading.Lock()
        self._gathered = running.copy()
        self.mean, self.var, self.count = running.mean, running.var, running.count

    def update(self, arr: NDArray[Any]) -> None:
        """Gather a batch, with the samples along the first axis."""
        self._gathered.update(arr)

    def commit(self) -> None:
        """Take in what was gathered."""
        gathered = self._gathered.copy()
        with self._lock:
            self.mean, self.var, self.count = gathered.mean, gathered.var, gathered.count

    def __reduce__(self) -> tuple[Callable[..., RunningMeanStd], tuple[Any, ...]]:
        with self._lock:
            return running_statistics, (self.mean, self.var, self.count)

    @property
    def running(self) -> RunningMeanStd:
        """The same as SB3's class."""
        function, arguments = self.__reduce__()
        return function(*arguments)


def running_statistics(mean: Any, var: Any, count: float) -> RunningMeanStd:
    """SB3's class with these figures."""
    running = RunningMeanStd(shape=np.shape(mean))
    running.mean, running.var, running.count = np.array(mean), np.array(var), count
    return running


@contextmanager
def frozen(normalize: VecNormalize | None) -> Iterator[Callable[[], None]]:
    """In the block the statistics move only with a call of what it is given.

    Afterwards they are SB3's again, with everything taken in.
    """
    replaced: list[FrozenStatistics] = []

    def freeze(running: RunningMeanStd) -> FrozenStatistics:
        replaced.append(FrozenStatistics(running))
        return replaced[-1]

    def commit() -> None:
        for statistics in replaced:
            statistics.commit()

    if normalize is None:
        yield commit
        return
    replace(normalize, freeze)
    try:
        yield commit
    finally:
        commit()
        replace(normalize, lambda statistics: statistics.running)


def replace(normalize: VecNormalize, function: Callable[[Any], RunningMeanStd]) -> None:
    """Put what the function makes of them in place of all its statistics."""
    if normalize.norm_obs:
        observed = normalize.obs_rms
        if isinstance(observed, dict):
            normalize.obs_rms = {key: function(value) for key, value in observed.items()}
        else:
            normalize.obs_rms = function(observed)
    normalize.ret_rms = function(normalize.ret_rms)
