"""Where SB3's figures go: a CSV file, TensorBoard events, and Weights & Biases if asked.

Rule: figures that cannot be written (a full disk) are lost, and the training goes on.
"""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.logger import CSVOutputFormat, KVWriter, Logger, filter_excluded_keys
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from sc2pool.cli.training.run_folder import PROGRESS_FILE
from sc2pool.errors import ConfigError

_STEPS_COLUMN = "time/total_timesteps"
"""SB3's name of the env steps of the whole run."""


def open_logger(folder: Path, others: Sequence[KVWriter], steps_done: int = 0) -> Logger:
    """SB3's log, to files in the folder; it continues existing ones.

    Args:
        folder: of the run.
        others: where the figures go, too.
        steps_done: env steps of the resumed model; figures of a later time are dropped.
    """
    path = folder / PROGRESS_FILE
    earlier = _lines_until(path, steps_done) if path.exists() else []
    log = CSVOutputFormat(str(path))
    # SB3 empties the file when it opens it; the first line holds the columns' names.
    if earlier:
        log.keys = earlier[0].rstrip("\n").split(",")
        log.file.writelines(earlier)
    files = [Tolerant(log), Tolerant(TensorBoardEvents(folder, steps_done))]
    return Logger(str(folder), [*files, *others])


def _lines_until(path: Path, steps_done: int) -> list[str]:
    """The file's lines before the first one of a later step, without one that was cut off."""
    lines = [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    for number, row in enumerate(csv.DictReader(lines), 1):
        steps = row.get(_STEPS_COLUMN) or ""  # an evaluation after the training has none
        if steps.isdigit() and int(steps) > steps_done:
            return lines[:number]
    return lines


class Tolerant(KVWriter):
    """One of SB3's log formats, without an error if its file cannot be written."""

    def __init__(self, log: KVWriter) -> None:
        self._log = log

    def write(
        self,
        key_values: dict[str, Any],
        key_excluded: dict[str, tuple[str, ...]],
        step: int = 0,
    ) -> None:
        """Write one row of figures."""
        with suppress(OSError):
            self._log.write(key_values, key_excluded, step)

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):
            self._log.close()


class TensorBoardEvents(KVWriter):
    """A file of TensorBoard's events, with all figures that are numbers.

    SB3's own format writes in a thread, which ends with a traceback once the disk is full.

    Args:
        folder: of the run.
        steps_done: env steps of the resumed model; TensorBoard drops figures of a later time.
    """

    def __init__(self, folder: Path, steps_done: int) -> None:
        name = f"events.out.tfevents.{time.time():.6f}.{os.getpid()}"
        self._file = (folder / name).open("xb")  # follows no link of another user's
        self._add(Event(file_version="brain.Event:2"))
        restart = SessionLog(status=SessionLog.START)
        self._add(Event(step=steps_done + 1, session_log=restart))

    def write(
        self,
        key_values: dict[str, Any],
        key_excluded: dict[str, tuple[str, ...]],
        step: int = 0,
    ) -> None:
        """Write one row of figures."""
        figures = filter_excluded_keys(key_values, key_excluded, "tensorboard")
        numbers = [
            Summary.Value(tag=name, simple_value=value)
            for name, value in figures.items()
            if isinstance(value, int | float | np.number)
        ]
        self._add(Event(step=step, summary=Summary(value=numbers)))
        self._file.flush()

    def _add(self, event: Event) -> None:
        event.wall_time = time.time()
        RecordWriter(self._file).write(event.SerializeToString())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class WandbOutput(KVWriter):
    """Weights & Biases: a run in the project `sc2pool`, in a group named after the run's folder.

    Every part of a resumed run is a run of its own in that group. wandb's own variables choose the
    rest (`WANDB_PROJECT`, `WANDB_MODE=offline`, …).

    Args:
        folder: of the run.

    Raises:
        ConfigError: wandb refuses to start; says why.
    """

    def __init__(self, folder: Path) -> None:
        import wandb  # noqa: PLC0415

        try:
            self._run = wandb.init(
                project=None if "WANDB_PROJECT" in os.environ else "sc2pool",
                group=folder.name,
                dir=str(folder),
            )
        except wandb.errors.Error as error:
            raise ConfigError(f"--wandb: {error}") from error

    def describe(self, description: Mapping[str, Any]) -> None:
        """Say what the run is."""
        self._run.config.update(dict(description))

    def write(
        self,
        key_values: dict[str, Any],
        key_excluded: dict[str, tuple[str, ...]],
        step: int = 0,
    ) -> None:
        """Send one row of figures."""
        self._run.log(filter_excluded_keys(key_values, key_excluded, "wandb"), step=step)

    def close(self) -> None:
        """Send what is left, and end the run."""
        self._run.finish()
