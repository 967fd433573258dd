"""Writes SB3's figures to a CSV file, TensorBoard events, and, on request, Weights & Biases.

Rule: figures that cannot be written (a full disk) are lost, and the training continues.
"""

from __future__ import annotations

import csv
import os
import re
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from stable_baselines3.common.logger import KVWriter, Logger, filter_excluded_keys
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from sc2pool.cli.training.run_folder import PROGRESS_FILE
from sc2pool.errors import ConfigError
from sc2pool.utilities import read_table, replacing

_EVENTS = "events.out.tfevents."
_TICK_S = 1e-5
"""The least time between two parts of a run, larger than the last digit of the files' names."""
_STEPS_COLUMN = "time/total_timesteps"
"""SB3's name for the env steps of the whole run."""


def open_logger(folder: Path, others: Sequence[KVWriter], steps_done: int = 0) -> Logger:
    """Open SB3's log with files in the folder; existing files are continued.

    Args:
        folder: the run's folder.
        others: further outputs of the figures.
        steps_done: env steps of the resumed model; later figures are dropped.

    Raises:
        ConfigError: an existing file of figures cannot be read.
    """
    files = [
        Tolerant(ProgressTable(folder / PROGRESS_FILE, steps_done)),
        Tolerant(TensorBoardEvents(folder, steps_done)),
    ]
    return Logger(str(folder), [*files, *others])


class ProgressTable(KVWriter):
    """A CSV file with a row for each update, and a column for each figure seen so far.

    SB3's own format empties the file when it is opened, and when a column is added. Here the file
    is replaced as a whole, so no row is lost whenever the program ends.

    Args:
        path: the file; existing rows are kept.
        steps_done: env steps of the resumed model; later rows are dropped.

    Raises:
        ConfigError: the file cannot be read.
    """

    def __init__(self, path: Path, steps_done: int = 0) -> None:
        self._path = path
        self._columns: list[str] = []
        self._file: TextIO | None = None
        if path.exists():
            with suppress(OSError):  # a full disk; the next call of `write` tries again
                self._rewrite((), steps_done)

    def write(
        self,
        key_values: dict[str, Any],
        key_excluded: dict[str, tuple[str, ...]],
        step: int = 0,  # noqa: ARG002 - SB3's signature
    ) -> None:
        """Write one row.

        Raises:
            OSError: the row cannot be written, and is lost.
        """
        figures = filter_excluded_keys(key_values, key_excluded, "csv")
        more = [name for name in figures if name not in self._columns]
        try:
            if more or self._file is None:
                self._rewrite(more)
            assert self._file is not None
            csv.writer(self._file, lineterminator="\n").writerow(
                figures.get(name) for name in self._columns
            )
        except OSError:
            self.close()  # the next row rewrites the file, without the part of this one
            self._file = None
            raise

    def _rewrite(self, more: Iterable[str], steps_done: int | None = None) -> None:
        """Write the file again, with more columns or without later rows, and open it."""
        self.close()
        with replacing(self._path) as unfinished, closing(self._earlier()) as earlier:
            columns = [*next(earlier, self._columns), *more]
            with unfinished.open("w", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(columns)
                for row in earlier:
                    if steps_done is not None and _steps_of(columns, row) > steps_done:
                        break
                    writer.writerow(row + [""] * (len(columns) - len(row)))
        self._columns = columns
        self._file = self._path.open("a", buffering=1, newline="")

    def _earlier(self) -> Generator[list[str], None, None]:
        """The existing file's header and rows; empty without a file."""
        if self._path.exists():
            yield from read_table(self._path)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with suppress(OSError):  # a full disk refuses the buffered rows again
                self._file.close()


def _steps_of(columns: Sequence[str], row: Sequence[str]) -> int:
    """The env steps of a row; 0 for a row without them, such as one of the last evaluation."""
    steps = dict(zip(columns, row, strict=False)).get(_STEPS_COLUMN, "")
    return int(steps) if steps.isdecimal() else 0


class Tolerant(KVWriter):
    """Wraps one of SB3's log formats, and ignores errors of its file."""

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

    SB3's own format writes in a thread, which ends with a traceback if the disk is full. Rule:
    TensorBoard reads the files in the order of their names, so a later part of a run has a later
    name and later times, even if the clock was set back.

    Args:
        folder: the run's folder.
        steps_done: env steps of the resumed model; TensorBoard drops later figures.
    """

    def __init__(self, folder: Path, steps_done: int) -> None:
        earlier = sorted(folder.glob(f"{_EVENTS}*"))
        self._began_s = max(time.time(), *(_latest_s(one) + _TICK_S for one in earlier), 0.0)
        self._began_at_s = time.monotonic()
        name = f"{_EVENTS}{self._began_s:017.6f}.{os.getpid()}"
        self._file = (folder / name).open("xb")  # "x" does not follow another user's link
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
        event.wall_time = self._began_s + time.monotonic() - self._began_at_s
        RecordWriter(self._file).write(event.SerializeToString())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _latest_s(events: Path) -> float:
    """The latest time in a file of events or in its name; 0 without any time."""
    named = re.match(rf"{re.escape(_EVENTS)}(\d{{1,10}}(?:\.\d+)?)\.", events.name)
    latest_s = float(named[1]) if named else 0.0
    with suppress(OSError, DecodeError), events.open("rb") as file:
        # Each record has its size in 8 bytes, a checksum of 4, the event, and a checksum of 4.
        while len(head := file.read(12)) == 12:
            content = file.read(int.from_bytes(head[:8], "little"))
            latest_s = max(latest_s, Event.FromString(content).wall_time)
            file.seek(4, os.SEEK_CUR)
    return latest_s


class WandbOutput(KVWriter):
    """Weights & Biases: a run in the project `sc2pool`, in a group named after the run's folder.

    Each part of a resumed run is a separate run in that group. wandb's own environment variables
    set everything else (`WANDB_PROJECT`, `WANDB_MODE=offline`, …).

    Args:
        folder: the run's folder.

    Raises:
        ConfigError: wandb refuses to start; the message has the reason.
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
        """Add the run's description to its configuration."""
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
        """Send buffered figures, and end the run."""
        self._run.finish()
