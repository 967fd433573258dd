"""Shows the progress of a training: a bar on a terminal, a line every few seconds elsewhere.

Both show the same `Figures`. `Recorder`, a callback of SB3, collects these, records episodes and
saves the run. Rule: an update is cheap and does not wait for the screen.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from stable_baselines3.common.callbacks import BaseCallback

from sc2pool.cli.stop import Stop, say
from sc2pool.cli.table import NONE, duration
from sc2pool.cli.training.episodes import EpisodeLog, EpisodeRow
from sc2pool.integration import Rates

LINE_EVERY_S = 5.0
_BAR_WIDTH = 16
"""In characters."""


@dataclass(frozen=True)
class Figures:
    """The figures to show."""

    steps: int
    total_steps: int
    steps_per_s: float
    mean_return: float
    """Over the latest episodes; NaN before the first episode has ended."""
    episodes: int
    faults: int
    win_rates: Mapping[str, float] = field(default_factory=dict)
    """By opponent, in self-play's newest evaluation; shown in place of the mean return."""

    def __str__(self) -> str:
        return f"{self.how_far} · {self.how_well}"

    @property
    def how_far(self) -> str:
        """The steps done and the time left."""
        return f"{self.steps:,} / {self.total_steps:,} steps · {duration(self.eta_s)} left"

    @property
    def how_well(self) -> str:
        """The rate and the results so far."""
        how_good = f"mean return {score(self.mean_return)}"
        if self.win_rates:
            won = (f"{rate:.0%} against {name}" for name, rate in self.win_rates.items())
            how_good = f"won {', '.join(won)}"
        parts = [f"{self.steps_per_s:,.0f} steps/s", f"{how_good} ({self.episodes:,} episodes)"]
        if self.faults:
            parts.append(f"{self.faults} cut short by faults")
        return " · ".join(parts)

    @property
    def eta_s(self) -> float:
        """Seconds left at the current rate."""
        left = max(0, self.total_steps - self.steps)
        return left / self.steps_per_s if self.steps_per_s else math.inf


class Bar:
    """A progress bar and a line of figures, redrawn in place; a narrow terminal wraps them."""

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
    """A line every `LINE_EVERY_S`, for logs and pipes."""

    def __init__(self) -> None:
        self._next_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        pass

    def show(self, figures: Figures) -> None:
        """Print a line if the last one is `LINE_EVERY_S` old."""
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._next_s = now_s + LINE_EVERY_S
            say(str(figures))


def open_display() -> Bar | Lines:
    """A bar if stdout is a terminal that can redraw it, else lines; both are context managers."""
    console = Console()
    return Bar(console) if sys.stdout.isatty() and not console.is_dumb_terminal else Lines()


def score(value: float) -> str:
    """A mean return with two decimals; a dash for NaN."""
    return NONE if math.isnan(value) else f"{value:.2f}"


SHOW_EVERY_S = 1.0
SAVE_EVERY_S = 60.0
RATE_WINDOW_S = 20.0
"""The window over which the shown steps/s are averaged."""


class Recorder(BaseCallback):
    """Records episodes, shows the progress and saves the run, at every step of the learning."""

    def __init__(
        self,
        total_steps: int,
        episodes: EpisodeLog,
        stop: Stop,
        display: Bar | Lines,
        save: Callable[[], None],
        *,
        win_rates: Callable[[], Mapping[str, float]] = dict,
    ) -> None:
        super().__init__()
        self.total_steps = total_steps
        self.episodes = episodes
        self.stop = stop
        self.display = display
        self.save = save
        self.win_rates = win_rates

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
        """Record the episode that ended with this info."""
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
        """Update the display."""
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
