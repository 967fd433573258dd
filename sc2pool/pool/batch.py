"""From the queue pairs to one batch of arrays.

An `Outcome` is what one step, or the begin of an episode, brought one env; a `Batch` is that of
some envs. Rules: a batch is made of fresh arrays and never written again once it is handed out; a
synthetic outcome is a truncation with reward 0, marked, and never a terminal state, because a crash
says nothing about the value of what came before it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sc2pool.game.clock import Tick
from sc2pool.pool.instances.seats import FaultReport
from sc2pool.pool.ipc.board import Rows
from sc2pool.pool.ipc.layout import Array, SpaceLayout
from sc2pool.pool.ipc.slot import TELLING, TERMINATED, TICK, TRUNCATED
from sc2pool.pool.ipc.trainer_end import TrainerEnd


@dataclass(slots=True)
class Outcome:
    """What one step, or the begin of an episode, brought one env.

    Attributes:
        observation: the newest observation if the space has no fixed layout.
        final_observation: the last observation of the episode that ended; None if none did.
        reset_info: the info of the episode that began; None if none did.
        report: the fault that made it synthetic; None for a real one.
        tick: how late the step was, in real time.
        episode_return: sum of the rewards of the episode that ended; None if none did, or if a
            fault cut it short.
    """

    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    info: dict[str, Any] = field(default_factory=dict)
    observation: Any = None
    final_observation: Any = None
    reset_info: dict[str, Any] | None = None
    report: FaultReport | None = None
    tick: Tick | None = None
    episode_return: float | None = None

    @property
    def over(self) -> bool:
        return self.terminated or self.truncated


@dataclass
class Batch:
    """What one step, or one reset, of some envs brought.

    Attributes:
        envs: int64 (k,), the envs, ascending; each array's row i belongs to envs[i].
        observations: in the space's structure; each array has shape (k, …). A tuple of k
            observations if the space has no fixed layout.
        rewards: float64 (k,).
        terminated: bool (k,).
        truncated: bool (k,).
        infos: a dict per env.
        final_observations: the episode's last observation if it ended, else None.
        reset_infos: the info of the new episode's reset if one began, else None.
    """

    envs: Array
    observations: Any
    rewards: Array
    terminated: Array
    truncated: Array
    infos: list[dict[str, Any]]
    final_observations: list[Any]
    reset_infos: list[dict[str, Any] | None]


def real_outcome(queue: TrainerEnd, flags: int, layout: SpaceLayout) -> Outcome | None:
    """What an instance answered to a step.

    None for a plain reply, as nearly all are: an observation, a reward, and nothing else. In real
    time none is plain, because each says how late it was.
    """
    if not flags & TELLING:
        return None
    observation, info = queue.out_of_band()
    outcome = Outcome(
        reward=queue.reward(),
        terminated=bool(flags & TERMINATED),
        truncated=bool(flags & TRUNCATED),
        info=info,
        observation=observation,
    )
    if flags & TICK:
        outcome.tick = tick = queue.tick()
        info.update({f"sc2pool.{name}": value for name, value in tick._asdict().items()})
    if outcome.over:
        outcome.episode_return = queue.progress().episode_return
        outcome.final_observation = queue.observation() if layout.fixed else observation
    return outcome


def synthetic_outcome(report: FaultReport, last_observation: Any) -> Outcome:
    """The made-up outcome of an env whose instance died before it answered."""
    return Outcome(
        truncated=True,
        info={"sc2pool.synthetic": True, "sc2pool.fault": fault_info(report)},
        observation=last_observation,
        final_observation=last_observation,
        report=report,
    )


def fault_info(report: FaultReport) -> dict[str, Any]:
    """A fault as infos have it."""
    return {
        "kind": str(report.fault.kind),
        "phase": str(report.fault.phase),
        "detail": report.fault.detail,
        "instance": report.instance,
        "recovery_s": time.monotonic() - report.at_s,
        "fault_report": report.folder,
    }


class Gatherer:
    """Makes batches, and remembers each env's newest row, which is shown again if the env dies.

    Args:
        layout: of one env's observation.
        n: how many envs there are.
    """

    def __init__(self, layout: SpaceLayout, n: int) -> None:
        self._layout = layout
        self._n = n
        self._every = np.arange(n)
        self._shown_to_all: Batch | None = None
        self._shown: dict[int, tuple[Batch, int]] = {}
        """Each env's newest row, if it is newer than the batch of all of them."""

    def gather_plain(self, rows: Rows) -> Batch:
        """One batch of all envs, each with an observation, a reward, and nothing else.

        Args:
            rows: the envs', in their order.
        """
        n = self._n
        batch = Batch(
            envs=self._every.copy(),
            observations=self._layout.build(rows.observations().__getitem__),
            rewards=rows.rewards(),
            terminated=np.zeros(n, np.bool_),
            truncated=np.zeros(n, np.bool_),
            infos=[{} for _ in range(n)],
            final_observations=[None] * n,
            reset_infos=[None] * n,
        )
        self._shown_to_all = batch
        self._shown.clear()
        return batch

    def gather(
        self,
        envs: Sequence[int],
        queues: Sequence[TrainerEnd | None],
        given: Sequence[Outcome | None],
    ) -> Batch:
        """One batch of these envs.

        Args:
            envs: their indices, ascending.
            queues: where the newest observation of each lies; None if its instance is gone.
            given: the outcome of each; None for a plain reply.
        """
        outcomes = [
            outcome or Outcome(reward=0.0 if queue is None else queue.reward())
            for queue, outcome in zip(queues, given, strict=True)
        ]
        for outcome in outcomes:
            if outcome.report is not None:
                fault = outcome.info["sc2pool.fault"]
                fault["recovery_s"] = time.monotonic() - outcome.report.at_s
        batch = Batch(
            envs=np.array(envs, np.int64),
            observations=self._observations(envs, queues, outcomes),
            rewards=np.array([outcome.reward for outcome in outcomes], np.float64),
            terminated=np.array([outcome.terminated for outcome in outcomes], np.bool_),
            truncated=np.array([outcome.truncated for outcome in outcomes], np.bool_),
            infos=[outcome.info for outcome in outcomes],
            final_observations=[outcome.final_observation for outcome in outcomes],
            reset_infos=[outcome.reset_info for outcome in outcomes],
        )
        for row, env in enumerate(envs):
            self._shown[env] = (batch, row)
        return batch

    def newest(self, queues: Sequence[TrainerEnd | None]) -> Any:
        """The newest observations of all envs, in the structure of a batch of all of them."""
        outcomes = [Outcome() for _ in queues]
        if not self._layout.fixed:
            for env, (queue, outcome) in enumerate(zip(queues, outcomes, strict=True)):
                outcome.observation = (
                    self.last_observation(env) if queue is None else queue.out_of_band()[0]
                )
        return self._observations(range(len(queues)), queues, outcomes)

    def _observations(
        self,
        envs: Sequence[int],
        queues: Sequence[TrainerEnd | None],
        outcomes: Sequence[Outcome],
    ) -> Any:
        leaves = self._layout.leaves
        if leaves is None:
            return tuple(outcome.observation for outcome in outcomes)
        arrays = [np.empty((len(envs), *leaf.shape), leaf.dtype) for leaf in leaves]
        for row, (env, queue) in enumerate(zip(envs, queues, strict=True)):
            if queue is not None:
                queue.copy_row(arrays, row)
                continue
            shown, shown_row = self._newest_row(env)  # the last good observation once more
            for array, (_, part) in zip(
                arrays, self._layout.parts(shown.observations), strict=True
            ):
                array[row] = part[shown_row]
        return self._layout.build(lambda index: arrays[index])

    def _newest_row(self, env: int) -> tuple[Batch, int]:
        shown = self._shown.get(env)
        if shown is None:
            assert self._shown_to_all is not None, "no batch has shown this env yet"
            return self._shown_to_all, env
        return shown

    def last_observation(self, env: int) -> Any:
        """The observation the env was last shown with, copied."""
        return self.row(*self._newest_row(env))

    def row(self, batch: Batch, row: int) -> Any:
        """One env's observation out of a batch, copied."""
        if not self._layout.fixed:
            return batch.observations[row]
        parts = [part for _, part in self._layout.parts(batch.observations)]
        return self._layout.copied(lambda index: parts[index][row])
