"""SB3's callback of a training run: what happens beside the learning."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from sc2pool.cli.stop import Stop
from sc2pool.cli.training.figures.episodes import EpisodeLog, EpisodeRow
from sc2pool.cli.training.progress import Bar, Figures, Lines
from sc2pool.pool.statistics.rates import Rates

SHOW_EVERY_S = 1.0
SAVE_EVERY_S = 60.0
RATE_WINDOW_S = 20.0
"""The shown steps/s are averaged over this time."""


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
