"""A pool's failure for good, from the env runner where it happens to the algorithm.

    env runner   ReportingEnv ── step raises ──► Ray's key-value store
    algorithm    after each training step ◄── failure_of(run)

RLlib only logs what an env raises, makes the runner anew, and asks again, up to a thousand times; a
task with a mistake would train on nothing. Rule: only errors of sc2pool end a training. They are
those that a new pool would meet again. A run is named by its algorithm, not by the configuration:
of one configuration a user makes several, at once (Tune) or after each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import ray
from ray.experimental.internal_kv import _internal_kv_get, _internal_kv_put

from sc2pool.envs.vector.env import SC2VectorEnv
from sc2pool.errors import NodeLostError, SC2PoolError
from sc2pool.ray.cluster import answered

_NAMESPACE = "sc2pool"


class ReportingEnv(SC2VectorEnv):
    """An `SC2VectorEnv` of an env runner, of whose failure the algorithm hears.

    Attributes:
        run: names the training; empty until the algorithm has told it.
    """

    run = ""

    def reset(self, **keywords: Any) -> Any:
        """As the env's."""
        with self._reported():
            return super().reset(**keywords)

    def step(self, actions: Any) -> Any:
        """As the env's."""
        with self._reported():
            return super().step(actions)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except SC2PoolError as error:
            words = f"on node {ray.util.get_node_ip_address()}: {type(error).__name__}: {error}"
            with suppress(NodeLostError):  # the head cannot be told; the runner's own error counts
                answered(
                    lambda: _internal_kv_put(
                        self.run.encode(), words.encode(), False, namespace=_NAMESPACE
                    )
                )
            raise


def failure_of(run: str) -> str:
    """The error that has ended a pool of this training, in words; empty if none has.

    Raises:
        NodeLostError: the cluster's head does not answer.
    """
    found = answered(lambda: _internal_kv_get(run.encode(), namespace=_NAMESPACE))
    return "" if found is None else found.decode()
