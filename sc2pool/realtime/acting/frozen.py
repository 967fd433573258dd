"""`VecNormalize`'s statistics while an actor's thread steps the env.

SB3 updates the statistics in every step. Here the actor's thread steps, while the learner may read
them at any moment: `EvalCallback` copies them, `CheckpointCallback` saves them. Rules: the
statistics change only in `commit`, so all observations between two commits are normalised alike. A
reader gets mean, variance and count of the same moment. A copy or a pickle is of SB3's own class.
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
    """Running statistics that collect new samples, and apply them only in `commit`."""

    def __init__(self, running: RunningMeanStd) -> None:
        self._lock = threading.Lock()
        self._collected = running.copy()
        self.mean, self.var, self.count = running.mean, running.var, running.count

    def update(self, arr: NDArray[Any]) -> None:
        """Collect a batch, with the samples along the first axis."""
        self._collected.update(arr)

    def commit(self) -> None:
        """Update the statistics with all samples collected so far."""
        collected = self._collected.copy()
        with self._lock:
            self.mean, self.var, self.count = collected.mean, collected.var, collected.count

    def __reduce__(self) -> tuple[Callable[..., RunningMeanStd], tuple[Any, ...]]:
        with self._lock:
            return _running_statistics, (self.mean, self.var, self.count)

    @property
    def running(self) -> RunningMeanStd:
        """These statistics as an object of SB3's class."""
        function, arguments = self.__reduce__()
        return function(*arguments)


def _running_statistics(mean: Any, var: Any, count: float) -> RunningMeanStd:
    running = RunningMeanStd(shape=np.shape(mean))
    running.mean, running.var, running.count = np.array(mean), np.array(var), count
    return running


@contextmanager
def frozen(normalize: VecNormalize | None) -> Iterator[Callable[[], None]]:
    """Freeze the statistics in the block; yield a function that commits the collected samples.

    After the block the statistics are of SB3's class again, with all samples committed.
    """
    statistics: list[FrozenStatistics] = []

    def freeze(running: RunningMeanStd) -> FrozenStatistics:
        statistics.append(FrozenStatistics(running))
        return statistics[-1]

    def commit() -> None:
        for each in statistics:
            each.commit()

    if normalize is None:
        yield commit
        return
    _replace_statistics(normalize, freeze)
    try:
        yield commit
    finally:
        commit()
        _replace_statistics(normalize, lambda each: each.running)


def _replace_statistics(
    normalize: VecNormalize, replacement: Callable[[Any], RunningMeanStd]
) -> None:
    """Replace each of the statistics of `normalize` by the result of `replacement`."""
    if normalize.norm_obs:
        obs_rms = normalize.obs_rms
        if isinstance(obs_rms, dict):
            normalize.obs_rms = {key: replacement(value) for key, value in obs_rms.items()}
        else:
            normalize.obs_rms = replacement(obs_rms)
    normalize.ret_rms = replacement(normalize.ret_rms)
