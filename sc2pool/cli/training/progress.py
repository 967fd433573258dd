"""The figures of a training while it runs: on the terminal, and in files.

A terminal shows a bar; in a pipe or file, a line appears every few seconds. The bar and the lines
show `Figures`. `Recorder`, a callback of SB3, collects the figures, records episodes and saves the
run. Rule: updating the display costs little, and the training does not wait for the terminal.

`open_logger` makes the logger that writes SB3's own figures: to a CSV file, to TensorBoard events
and, if the user asks for it, to Weights & Biases. Rule: figures that cannot be written, for example
to a full disk, are lost, and the training continues.
"""

from __future__ import annotations

import csv
import math
import os
import re
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Self, TextIO

import numpy as np
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger, filter_excluded_keys
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from sc2pool.cli.stop import Stop, say
from sc2pool.cli.table import NONE, duration
from sc2pool.cli.training.run_folder import PROGRESS_FILE, EpisodeLog, EpisodeRow
from sc2pool.errors import ConfigError
from sc2pool.integration import Rates
from sc2pool.utilities import open_regular, read_table, replacing

LINE_EVERY_S = 5.0
_BAR_WIDTH = 16
"""The bar's width in characters."""


@dataclass(frozen=True)
class Figures:
    steps: int
    total_steps: int
    steps_per_s: float
    mean_return: float
    """The mean return of the latest episodes; NaN before the first episode has ended."""
    episodes: int
    faults: int
    win_rates: Mapping[str, float] = field(default_factory=dict)
    """With self-play: the newest win rate by opponent, shown instead of the mean return."""

    def __str__(self) -> str:
        return f"{self.how_far} · {self.how_well}"

    @property
    def how_far(self) -> str:
        left = max(0, self.total_steps - self.steps)
        left_s = left / self.steps_per_s if self.steps_per_s else math.inf
        return f"{self.steps:,} / {self.total_steps:,} steps · {duration(left_s)} left"

    @property
    def how_well(self) -> str:
        how_good = f"mean return {score(self.mean_return)}"
        if self.win_rates:
            won = (f"{rate:.0%} against {name}" for name, rate in self.win_rates.items())
            how_good = f"won {', '.join(won)}"
        parts = [f"{self.steps_per_s:,.0f} steps/s", f"{how_good} ({self.episodes:,} episodes)"]
        if self.faults:
            parts.append(f"{self.faults} cut short by faults")
        return " · ".join(parts)


class Bar:
    """A progress bar and figures, in two lines that are redrawn and wrap in a narrow terminal."""

    def __init__(self, console: Console) -> None:
        self._live = Live("starting", console=console, auto_refresh=False)

    def __enter__(self) -> Self:
        with suppress(OSError):  # the terminal may have been closed
            self._live.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        with suppress(OSError):
            self._live.stop()

    def show(self, figures: Figures) -> None:
        """Redraw the bar; called about once a second."""
        first = Table.grid(padding=(0, 1))
        bar = ProgressBar(figures.total_steps, figures.steps, width=_BAR_WIDTH)
        first.add_row(bar, Text(figures.how_far))
        with suppress(OSError):
            self._live.update(Group(first, Text(figures.how_well)), refresh=True)


class Lines:
    """Prints a line every `LINE_EVERY_S` seconds, for logs and pipes."""

    def __init__(self) -> None:
        self._next_s = 0.0

    def show(self, figures: Figures) -> None:
        """Print a line if the last line is at least `LINE_EVERY_S` seconds old."""
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._next_s = now_s + LINE_EVERY_S
            say(str(figures))


def open_display() -> AbstractContextManager[Bar | Lines]:
    """A progress bar if stdout is a terminal that can redraw it, else lines of figures."""
    console = Console()
    redraws = sys.stdout.isatty() and not console.is_dumb_terminal
    return Bar(console) if redraws else nullcontext(Lines())


def score(value: float) -> str:
    """A mean return with two decimals; a dash for NaN."""
    return NONE if math.isnan(value) else f"{value:.2f}"


SHOW_EVERY_S = 1.0
SAVE_EVERY_S = 60.0
RATE_WINDOW_S = 20.0
"""The window over which the shown steps/s are averaged."""


class Recorder(BaseCallback):
    """Records episodes, shows the progress and saves the run while the algorithm learns."""

    def __init__(
        self,
        total_steps: int,
        episodes: EpisodeLog,
        stop: Stop,
        display: Bar | Lines,
        save: Callable[[], None],
    ) -> None:
        super().__init__()
        self.total_steps = total_steps
        self.episodes = episodes
        self.stop = stop
        self.display = display
        self.save = save
        self.win_rates: Callable[[], Mapping[str, float]] = dict
        """The newest win rates, with self-play."""

    def _on_training_start(self) -> None:
        now_s = time.monotonic()
        self.started_s = now_s - self.episodes.wall_time_s
        self.next_show_s = now_s + SHOW_EVERY_S
        self.next_save_s = now_s + SAVE_EVERY_S
        self.rates = Rates(RATE_WINDOW_S)
        self.rates.note(now_s, {"steps": self.model.num_timesteps})

    def _on_step(self) -> bool:
        now_s = time.monotonic()
        for info in self.locals["infos"]:
            if "episode" in info:
                self.record(info, now_s)
        if now_s >= self.next_show_s:
            self.next_show_s = now_s + SHOW_EVERY_S
            self.show()
        if now_s >= self.next_save_s:
            self.save()
            self.next_save_s = time.monotonic() + SAVE_EVERY_S
        return self.stop.signal is None

    def _on_training_end(self) -> None:
        self.episodes.end(time.monotonic() - self.started_s)
        self.show()

    def record(self, info: dict[str, Any], now_s: float) -> None:
        fault = info.get("sc2pool.fault")
        self.episodes.add(
            EpisodeRow(
                total_steps=self.num_timesteps,
                episode_return=round(float(info["episode"]["r"]), 6),
                length=int(info["episode"]["l"]),
                wall_time_s=round(now_s - self.started_s, 3),
                fault=str(fault["kind"]) if fault else "",
            )
        )

    def show(self) -> None:
        self.rates.note(time.monotonic(), {"steps": self.num_timesteps})
        self.display.show(
            Figures(
                steps=self.num_timesteps,
                total_steps=self.total_steps,
                steps_per_s=self.rates.per_s("steps") or 0.0,
                mean_return=self.episodes.mean_return(),
                episodes=len(self.episodes.episodes),
                faults=self.episodes.faults,
                win_rates=self.win_rates(),
            )
        )


_EVENTS = "events.out.tfevents."
_TICK_S = 1e-5
"""A new file's times begin at least this long after those of earlier files, in seconds."""
_STEPS_COLUMN = "time/total_timesteps"
"""SB3's name for the env steps of the whole run."""


def open_logger(folder: Path, others: Sequence[KVWriter], steps_done: int = 0) -> Logger:
    """Open SB3's log, which writes to files in the run's folder and to `others`.

    Existing files are continued, but figures after the resumed model's last env step, `steps_done`,
    are dropped. Raises `ConfigError` if a file cannot be read.
    """
    table = ProgressTable(folder / PROGRESS_FILE, steps_done)
    return Logger(str(folder), [table, TensorBoardEvents(folder, steps_done), *others])


class Output(KVWriter, ABC):
    """An output of SB3's figures; a row that cannot be written, as on a full disk, is lost.

    `format` is SB3's name of the output's format; SB3 excludes some figures from some formats.
    """

    format: ClassVar[str]

    def write(
        self,
        key_values: dict[str, Any],
        key_excluded: dict[str, tuple[str, ...]],
        step: int = 0,
    ) -> None:
        """Write one row of figures; SB3 calls this method."""
        with suppress(OSError):
            self.add(filter_excluded_keys(key_values, key_excluded, self.format), step)

    @abstractmethod
    def add(self, figures: dict[str, Any], step: int) -> None:
        """Write one row of figures; may raise `OSError`."""


class ProgressTable(Output):
    """A CSV file with a row for each update, and a column for each figure seen so far.

    SB3's own class empties the file when it is opened, and when a column is added. This class
    replaces the file as a whole, so no row is lost, no matter when the program ends. Raises
    `ConfigError` if an existing file cannot be read.
    """

    format = "csv"

    def __init__(self, path: Path, steps_done: int = 0) -> None:
        self._path = path
        self._columns: list[str] = []
        self._file: TextIO | None = None
        if path.exists():
            with suppress(OSError):  # a full disk; the next call of `add` tries again
                self._rewrite((), steps_done)

    def add(self, figures: dict[str, Any], _: int) -> None:
        more = [name for name in figures if name not in self._columns]
        try:
            if more or self._file is None:
                self._rewrite(more)
            assert self._file is not None
            csv.writer(self._file, lineterminator="\n").writerow(map(figures.get, self._columns))
        except OSError:
            self.close()  # the next `add` drops an incomplete row

    def _rewrite(self, more: Iterable[str], steps_done: int | None = None) -> None:
        """Rewrite and open the file; add the columns `more`, and drop rows after `steps_done`."""
        self.close()
        earlier = list(read_table(self._path)) if self._path.exists() else []
        header, *rows = earlier or [self._columns]
        columns = [*header, *more]
        with replacing(self._path) as unfinished, unfinished.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            for row in rows:
                if steps_done is not None and _steps_of(columns, row) > steps_done:
                    break
                writer.writerow(row + [""] * (len(columns) - len(row)))
        self._columns = columns
        self._file = self._path.open("a", buffering=1, newline="")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with suppress(OSError):  # a full disk may refuse buffered rows
                self._file.close()
            self._file = None


def _steps_of(columns: Sequence[str], row: Sequence[str]) -> int:
    """The env steps of a row; 0 if the row has no env steps, as after the last evaluation."""
    steps = dict(zip(columns, row, strict=False)).get(_STEPS_COLUMN, "")
    return int(steps) if steps.isdecimal() else 0


class TensorBoardEvents(Output):
    """A file of TensorBoard's events, with all figures that are numbers.

    SB3's own class writes in a thread, which ends with a traceback if the disk is full. Rule:
    TensorBoard reads the files in the order of their names, so each part of a run has a file with a
    later name and later times, even if the clock was set back. The file's first event makes
    TensorBoard drop the earlier files' figures of all env steps after `steps_done`.
    """

    format = "tensorboard"

    def __init__(self, folder: Path, steps_done: int) -> None:
        earlier = sorted(folder.glob(f"{_EVENTS}*"))
        self._began_s = max(time.time(), *(_latest_s(one) + _TICK_S for one in earlier), 0.0)
        self._began_at_s = time.monotonic()
        name = f"{_EVENTS}{self._began_s:017.6f}.{os.getpid()}"
        self._file = (folder / name).open("xb")  # mode "x" does not follow links
        self._write(Event(file_version="brain.Event:2"))
        restart = SessionLog(status=SessionLog.START)
        self._write(Event(step=steps_done + 1, session_log=restart))

    def add(self, figures: dict[str, Any], step: int) -> None:
        numbers = [
            Summary.Value(tag=name, simple_value=value)
            for name, value in figures.items()
            if isinstance(value, int | float | np.number)
        ]
        self._write(Event(step=step, summary=Summary(value=numbers)))
        self._file.flush()

    def _write(self, event: Event) -> None:
        event.wall_time = self._began_s + time.monotonic() - self._began_at_s
        RecordWriter(self._file).write(event.SerializeToString())

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):
            self._file.close()


_MOST_TIME_S: Final = 1e10
"""Times from this on are ignored: only damaged files have them, and file names cannot hold them."""


def _latest_s(events: Path) -> float:
    """The latest time in a file of events or in the file's name; 0 if there is no time."""
    named = re.match(rf"{re.escape(_EVENTS)}(\d{{1,10}}(?:\.\d+)?)\.", events.name)
    latest_s = float(named[1]) if named else 0.0
    with suppress(OSError, DecodeError), open_regular(events) as file:
        left = os.fstat(file.fileno()).st_size  # a damaged record's size may be wrong
        # A record has a size (8 bytes), a checksum (4), the event, and a checksum (4).
        while len(head := file.read(12)) == 12:
            content = file.read(min(int.from_bytes(head[:8], "little"), left))
            if (wall_time := Event.FromString(content).wall_time) < _MOST_TIME_S:
                latest_s = max(latest_s, wall_time)
            file.seek(4, os.SEEK_CUR)
    return latest_s


class WandbOutput(Output):
    """Weights & Biases: a run in the project `sc2pool`, in a group named after the run's folder.

    If a training is resumed, each part is a separate run in that group. wandb's environment
    variables, such as `WANDB_PROJECT` and `WANDB_MODE=offline`, set the project and all other
    options. Raises `ConfigError` if wandb refuses to start.
    """

    format = "wandb"

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
        self._run.config.update(dict(description))

    def add(self, figures: dict[str, Any], step: int) -> None:
        self._run.log(figures, step=step)

    def close(self) -> None:
        """Send buffered figures, and end the run."""
        self._run.finish()
