"""Makes records for the checker from the values that a pool returns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sc2pool.pool.batch import Batch
from tests.support.audit.audited.task import Stamp
from tests.support.audit.checker import Began, Mark, Received, Record, Sent

Info = dict[str, Any]


def mark_in(info: Info | None) -> Mark | None:
    """The fault that an info reports; None if it reports none."""
    fault = (info or {}).get("sc2pool.fault")
    return None if fault is None else Mark(fault["instance"], fault["kind"])


def from_reset(observations: Any, reset_infos: Sequence[Info]) -> Iterator[Began]:
    """Records of the values that `VecEnv.reset` returned."""
    for env, (row, info) in enumerate(zip(observations, reset_infos, strict=True)):
        yield Began(env, Stamp.of(row), mark_in(info))


def from_step(
    step: tuple[Any, Any, Any, Sequence[Info]], reset_infos: Sequence[Info]
) -> Iterator[Received]:
    """Records of the values that `VecEnv.step` returned."""
    for env, (row, reward, done, info) in enumerate(zip(*step, strict=True)):
        truncated = info["TimeLimit.truncated"]
        final = info.get("terminal_observation")
        yield Received(
            env,
            Stamp.of(row),
            float(reward),
            terminated=bool(done) and not truncated,
            truncated=truncated,
            final=None if final is None else Stamp.of(final),
            synthetic=info.get("sc2pool.synthetic", False),
            untold="sc2pool.untold_end" in info,
            mark=mark_in(info),
            reset_mark=mark_in(reset_infos[env]) if done else None,
        )


def from_batch(batch: Batch, rows: int = 1) -> Iterator[Received]:
    """Records of the batch that `Pool.recv` returned, for the rows of its envs.

    Args:
        batch: The batch that the pool returned.
        rows: The number of rows of each env.
    """
    numbers = [env * rows + row for env in batch.envs.tolist() for row in range(rows)]
    for row, env in enumerate(numbers):
        final, info = batch.final_observations[row], batch.infos[row]
        yield Received(
            env,
            Stamp.of(batch.observations[row]),
            float(batch.rewards[row]),
            terminated=bool(batch.terminated[row]),
            truncated=bool(batch.truncated[row]),
            final=None if final is None else Stamp.of(final),
            synthetic=info.get("sc2pool.synthetic", False),
            untold="sc2pool.untold_end" in info,
            mark=mark_in(info),
            reset_mark=mark_in(batch.reset_infos[row]),
        )


def marks_of(records: Iterable[Record], rows: int = 1) -> Iterator[tuple[int, Mark]]:
    """All faults in these records, each with the number of its env in the pool.

    Args:
        records: The records of all rows.
        rows: The number of rows of each env. Only the first row's faults count, because the
            checker compares an env's rows.
    """
    for record in records:
        if isinstance(record, Sent) or record.env % rows:
            continue
        marks = (record.mark, record.reset_mark if isinstance(record, Received) else None)
        for mark in marks:
            if mark is not None:
                yield record.env // rows, mark
