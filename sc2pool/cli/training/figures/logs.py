"""Where SB3's figures go: a CSV file, TensorBoard events, and Weights & Biases if asked.

Rule: figures that cannot be written (a full disk) are lost, and the training goes on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.logger import CSVOutputFormat, KVWriter, Logger, filter_excluded_keys
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from sc2pool.cli.training.run_folder import PROGRESS_FILE
from sc2pool.errors import ConfigError


def open_logger(folder: Path, others: Sequence[KVWriter]) -> Logger:
    """SB3's log, to files in the folder; it continues existing ones.

    Args:
        folder: of the run.
        others: where the figures go, too.
    """
    path = folder / PROGRESS_FILE
    earlier = path.read_text() if path.exists() else ""
    log = CSVOutputFormat(str(path))
    # SB3 empties the file when it opens it; the first line holds the columns' names.
    if earlier:
        log.keys = earlier.partition("\n")[0].split(",")
        log.file.write(earlier[: earlier.rfind("\n") + 1])
    files = [Tolerant(log), Tolerant(TensorBoardEvents(folder))]
    return Logger(str(folder), [*files, *others])


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
    """

    def __init__(self, folder: Path) -> None:
        name = f"events.out.tfevents.{time.time():.0f}.{os.getpid()}"
        self._file = (folder / name).open("wb")
        self._add(Event(file_version="brain.Event:2"))

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
