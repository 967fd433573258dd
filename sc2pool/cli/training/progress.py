"""The progress of a training: a bar on a terminal, a plain line every few seconds elsewhere.

Both show the same `Figures`. Rule: an update is cheap and does not wait for the screen.
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from sc2pool.cli.units import NONE, duration

LINE_EVERY_S = 5.0


@dataclass(frozen=True)
class Figures:
    """What is shown."""

    steps: int
    total_steps: int
    steps_per_s: float
    mean_return: float
    """Over the latest episodes; NaN before the first one has ended."""
    episodes: int
    faults: int

    def __str__(self) -> str:
        parts = [
            f"{self.steps:,} / {self.total_steps:,} steps",
            f"{self.steps_per_s:,.0f} steps/s",
            f"mean return {score(self.mean_return)} ({self.episodes:,} episodes)",
            f"{duration(self.eta_s)} left",
        ]
        if self.faults:
            parts.append(f"{self.faults} cut short by faults")
        return " · ".join(parts)

    @property
    def eta_s(self) -> float:
        """Seconds left at the present rate."""
        left = max(0, self.total_steps - self.steps)
        return left / self.steps_per_s if self.steps_per_s else math.inf


class Display(Protocol):
    """Shows figures; a context manager."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc_info: object) -> None: ...

    def show(self, figures: Figures) -> None:
        """Show the newest figures; it is called about once a second."""
        ...


class Bar:
    """A progress bar that is redrawn in place."""

    def __init__(self) -> None:
        self._progress = Progress(
            BarColumn(bar_width=16),
            TextColumn("{task.description}"),
            console=Console(),
            auto_refresh=False,
        )
        self._bar = self._progress.add_task("starting", total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._progress.stop()

    def show(self, figures: Figures) -> None:
        """Redraw the bar."""
        self._progress.update(
            self._bar,
            total=figures.total_steps,
            completed=figures.steps,
            description=str(figures),
            refresh=True,
        )


class Lines:
    """A line every `LINE_EVERY_S`, for logs and pipes."""

    def __init__(self) -> None:
        self._next_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        pass

    def show(self, figures: Figures) -> None:
        """Print a line if it is time for one."""
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._next_s = now_s + LINE_EVERY_S
            print(figures, flush=True)


def open_display() -> Display:
    """A bar if stdout is a terminal, else lines."""
    return Bar() if sys.stdout.isatty() else Lines()


def score(value: float) -> str:
    """A mean return with two decimals; a dash for NaN."""
    return NONE if math.isnan(value) else f"{value:.2f}"
