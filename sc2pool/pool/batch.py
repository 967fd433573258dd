"""From the seats' slots to one batch of arrays.

An `Outcome` is what one step brought one env; a `Batch` is the outcomes of some envs, gathered.
Rules: a batch is made of fresh arrays and never written again once it is handed out; a synthetic
outcome is a truncation with reward 0, marked, and never a terminal state, because a crash says
nothing about the value of what came before it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sc2pool.game.clock import Tick
from sc2pool.pool.instances.seats import FaultReport, Seat
from sc2pool.pool.ipc.layout import Array, SpaceLayout
from sc2pool.pool.ipc.slot import TELLING, TERMINATED, TICK, TRUNCATED


@dataclass(slots=True)
class Outcome:
    """What one step brought one env.

    Attributes:
        aside: the newest observation where the space has no fixed layout.
        final_observation: the last observation of the episode that ended; None if none did.
        reset_info: the info of the episode that began; None if none did.
        report: the fault that made it synthetic; None for a real one.
        tick: how late it was, in real time.
    """

    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    info: dict[str, Any] = field(default_factory=dict)
    aside: Any = None
    final_observation: Any = None
    reset_info: dict[str, Any] | None = None
    report: FaultReport | None = None
    tick: Tick | None = None

    @property
    def over(self) -> bool:
        return self.terminated or self.truncated


@dataclass
class Batch:
    """What one step, or one reset, of some envs brought.

    Attributes:
        envs: int64 (k,), the envs, ascending; each array's row i belongs to envs[i].
        observations: in the space's structure; each array has shape (k, …). A tuple of k
            observations where the space has no fixed layout.
        rewards: float64 (k,).
        terminated: bool (k,).
        truncated: bool (k,).
        infos: a dict per env.
        final_observations: the episode's last observation where it ended, else None.
        reset_infos: the info of the new episode's reset where one began, else None.
    """

    envs: Array
    observations: Any
    rewards: Array
    terminated: Array
    truncated: Array
    infos: list[dict[str, Any]]
    final_observations: list[Any]
    reset_infos: list[dict[str, Any] | None]


def outcome_of(seat: Seat, layout: SpaceLayout) -> Outcome | None:
    """The real outcome, out of the slot of the instance that answered.

    None for a plain one, as nearly all are: an observation and a reward, and no more to tell. In
    real time none is plain, for each tells how late it was.
    """
    assert seat.source is not None
    end = seat.source.end
    flags = end.flags()
    if not flags & TELLING:
        return None
    observation, info = seat.source.opened_aside()
    outcome = Outcome(
        reward=end.reward(),
        terminated=bool(flags & TERMINATED),
        truncated=bool(flags & TRUNCATED),
        info=info,
        aside=observation,
    )
    if flags & TICK:
        outcome.tick = tick = end.tick()
        info.update({f"sc2pool.{name}": value for name, value in tick._asdict().items()})
    if outcome.over:
        outcome.final_observation = end.observation() if layout.fixed else observation
    return outcome


def synthetic_outcome(seat: Seat, last_observation: Any) -> Outcome:
    """The made-up outcome of an env whose instance died before it answered."""
    report, seat.fault = seat.fault, None
    assert report is not None, "no answer, and no fault that explains it"
    seat.source = None
    return Outcome(
        truncated=True,
        info={"sc2pool.synthetic": True, "sc2pool.fault": fault_info(report)},
        aside=last_observation,
        final_observation=last_observation,
        report=report,
    )


def begin_episode(seat: Seat, outcome: Outcome) -> None:
    """Note what the reset of the env's new episode told."""
    assert seat.source is not None
    outcome.aside, info = seat.source.opened_aside()
    if seat.fault is not None:
        info["sc2pool.fault"] = fault_info(seat.fault)
        seat.fault = None
    outcome.reset_info = info


def fault_info(report: FaultReport) -> dict[str, Any]:
    """A fault as it stands in an info."""
    return {
        "kind": str(report.fault.kind),
        "phase": str(report.fault.phase),
        "detail": report.fault.detail,
        "instance": report.instance,
        "recovery_s": time.monotonic() - report.at_s,
        "fault_report": report.folder,
    }


class Gatherer:
    """Makes batches, and remembers each env's newest row for when its instance dies."""

    def __init__(self, layout: SpaceLayout, n: int) -> None:
        self._layout = layout
        self._shown: list[tuple[Batch, int] | None] = [None] * n

    def gather_plain(self, seats: Sequence[Seat]) -> Batch:
        """One batch of these seats' newest observations and rewards: there was nothing else."""
        n = len(seats)
        ends = [seat.source.end for seat in seats if seat.source is not None]
        return self._note(
            Batch(
                envs=np.array([seat.index for seat in seats], np.int64),
                observations=self._layout.build(
                    lambda leaf: np.concatenate([end.rows[leaf] for end in ends])
                ),
                rewards=np.array([end.reward() for end in ends], np.float64),
                terminated=np.zeros(n, np.bool_),
                truncated=np.zeros(n, np.bool_),
                infos=[{} for _ in seats],
                final_observations=[None] * n,
                reset_infos=[None] * n,
            ),
            seats,
        )

    def gather(self, seats: Sequence[Seat], given: Sequence[Outcome | None]) -> Batch:
        """One batch of these seats' outcomes and newest observations."""
        if given and not any(given):
            return self.gather_plain(seats)
        outcomes = [
            outcome or Outcome(reward=0.0 if seat.source is None else seat.source.end.reward())
            for seat, outcome in zip(seats, given, strict=True)
        ]
        for outcome in outcomes:
            if outcome.report is not None:
                fault = outcome.info["sc2pool.fault"]
                fault["recovery_s"] = time.monotonic() - outcome.report.at_s
        return self._note(
            Batch(
                envs=np.array([seat.index for seat in seats], np.int64),
                observations=self._observations(seats, outcomes),
                rewards=np.array([outcome.reward for outcome in outcomes], np.float64),
                terminated=np.array([outcome.terminated for outcome in outcomes], np.bool_),
                truncated=np.array([outcome.truncated for outcome in outcomes], np.bool_),
                infos=[outcome.info for outcome in outcomes],
                final_observations=[outcome.final_observation for outcome in outcomes],
                reset_infos=[outcome.reset_info for outcome in outcomes],
            ),
            seats,
        )

    def _note(self, batch: Batch, seats: Sequence[Seat]) -> Batch:
        for row, seat in enumerate(seats):
            self._shown[seat.index] = (batch, row)
        return batch

    def newest(self, seats: Sequence[Seat]) -> Any:
        """These seats' newest observations, in a batch's structure."""
        outcomes = []
        for seat in seats:
            outcomes.append(Outcome())
            if not self._layout.fixed:
                outcomes[-1].aside = (
                    self.last_observation(seat.index)
                    if seat.source is None
                    else seat.source.opened_aside()[0]
                )
        return self._observations(seats, outcomes)

    def _observations(self, seats: Sequence[Seat], outcomes: Sequence[Outcome]) -> Any:
        leaves = self._layout.leaves
        if leaves is None:
            return tuple(outcome.aside for outcome in outcomes)
        arrays = [np.empty((len(seats), *leaf.shape), leaf.dtype) for leaf in leaves]
        for row, seat in enumerate(seats):
            if seat.source is not None:
                seat.source.end.copy_row(arrays, row)
            else:  # it died, and no new episode was wanted: the last good one once more
                for array, last in zip(arrays, self._last_leaves(seat.index), strict=True):
                    array[row] = last
        return self._layout.build(lambda index: arrays[index])

    def _last_leaves(self, env: int) -> Iterator[Array]:
        shown = self._shown[env]
        assert shown is not None
        batch, row = shown
        return (part[row] for _, part in self._layout.parts(batch.observations))

    def last_observation(self, env: int) -> Any:
        """The observation the env was last shown with, copied."""
        shown = self._shown[env]
        assert shown is not None, "no batch has shown this env yet"
        return self.row(*shown)

    def row(self, batch: Batch, row: int) -> Any:
        """One env's observation out of a batch, copied."""
        if not self._layout.fixed:
            return batch.observations[row]
        parts = [part for _, part in self._layout.parts(batch.observations)]
        return self._layout.build(lambda index: parts[index][row].copy()[()])
