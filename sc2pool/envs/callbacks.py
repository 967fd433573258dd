"""Callbacks for a Stable-Baselines3 model that learns on a pool.

`model.learn(100_000, callback=PoolStatsCallback())`:
    Writes the pool's statistics to the model's log (TensorBoard, CSV, …), and shows the model's
    training figures in `sc2pool watch`.
`model.learn(100_000, callback=SnapshotCallback(store, every=10_000))`:
    Saves snapshots of the model, which become its opponents.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import fields
from numbers import Real
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from sc2pool.envs.sb3 import PoolVecEnv
from sc2pool.envs.shared_keywords import whole_number
from sc2pool.errors import ConfigError
from sc2pool.pool.measures import Rates
from sc2pool.pool.statistics import PoolStats
from sc2pool.tasks.opponents.snapshots import SnapshotStore

log = logging.getLogger("sc2pool")

_RECORD_EVERY_S = 1.0
_UPDATE = "train/"
"""SB3 logs the figures of the model's updates under names that begin with this prefix."""


class PoolStatsCallback(BaseCallback):
    """Adds the pool's counters, under `pool/`, to the figures that the model logs.

    After each rollout, but at most once a second, the callback records these figures:
    `pool/steps_per_s` (since the previous record), each counter of `PoolStats` under its own name
    (such as `pool/episodes`), `pool/faults`, `pool/replacements/CAUSE` (for each cause so far),
    `pool/memory_bytes` (of all games and workers), `pool/reset_s_p95/KIND` and
    `pool/recovery_s_max`. For an env with `opponent=` there are also `pool/matches/NAME`, the
    number of matches against each opponent, and `pool/win_rate/NAME`.

    `sc2pool watch` also shows the figures of the model's newest update (`train/loss`, …) as curves.

    Raises:
        ConfigError: the model's env neither is nor wraps a `SubprocSC2VecEnv`.
    """

    def _on_training_start(self) -> None:
        self._rates = Rates(_RECORD_EVERY_S)
        self._next_record_s = 0.0
        self._pool()  # a wrong env raises before the first step, not after the first rollout

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        now_s = time.monotonic()
        if now_s < self._next_record_s:
            return
        self._next_record_s = now_s + _RECORD_EVERY_S
        env = self._pool()
        env.pool.show_figures(updates(self.logger.name_to_value))
        stats = env.stats()
        self._rates.note(now_s, {"steps": stats.env_steps})
        steps_per_s = self._rates.per_s("steps")
        if steps_per_s is not None:
            self.logger.record("pool/steps_per_s", steps_per_s)
        for name, value in figures(stats).items():
            self.logger.record(f"pool/{name}", value)

    def _pool(self) -> PoolVecEnv[Any]:
        env = self.training_env.unwrapped
        if not isinstance(env, PoolVecEnv):
            raise ConfigError(
                f"PoolStatsCallback needs a SubprocSC2VecEnv, got {type(env).__name__}"
            )
        return env


class SnapshotCallback(BaseCallback):
    """Saves snapshots of the model, and records the model's win rate against each snapshot.

    After each rollout the win rates are logged as `self_play/win_rate/step-N`, and written to the
    store, whose rule "prioritised" uses them. If a snapshot cannot be saved (a full disk), a
    warning is logged and the training continues.

    Add the first snapshot yourself, because the first reset already needs an opponent:

        store.add(model, model.num_timesteps)
        model.learn(200_000, callback=SnapshotCallback(store, every=10_000))

    Args:
        store: The folder of the snapshots.
        every: The number of env steps between two snapshots.

    Raises:
        ConfigError: `every` is not a whole number of at least 1.
    """

    def __init__(self, store: SnapshotStore, every: int, verbose: int = 0) -> None:
        super().__init__(verbose)
        self._store = store
        self._every = whole_number("every", every, 1)
        self._next = 0
        self._rates = store.win_rates()

    def _on_training_start(self) -> None:
        self._next = self.num_timesteps + self._every

    def _on_step(self) -> bool:
        self._rates.note(self.locals["infos"])
        if self.num_timesteps >= self._next:
            self._next = self.num_timesteps + self._every
            try:
                self._store.add(self.model, self.num_timesteps)
            except OSError as error:
                log.warning("no snapshot at %d steps: %s", self.num_timesteps, error)
        return True

    def _on_rollout_end(self) -> None:
        rates = self._rates
        present = self._store.snapshots()
        if present:  # an empty list means a failed read, because the first snapshot always stays
            rates.keep(snapshot.name for snapshot in present)
        try:
            rates.save()
        except OSError as error:
            log.warning("the win rates cannot be written: %s", error)
        for name, score in rates.scores.items():
            self.logger.record(f"self_play/win_rate/{name}", score.win_rate)


def updates(logged: Mapping[str, Any]) -> dict[str, float]:
    """The figures of the model's updates, selected from all values in its logger."""
    return {
        name.removeprefix(_UPDATE): float(value)
        for name, value in logged.items()
        if name.startswith(_UPDATE) and isinstance(value, Real)
    }


def figures(stats: PoolStats) -> dict[str, float]:
    """The pool's statistics as numbers by name."""
    found: dict[str, float] = {
        field.name: getattr(stats, field.name)
        for field in fields(stats)
        if "metric" in field.metadata and field.metadata["metric"].kind == "counter"
    }
    found["faults"] = stats.faults
    found |= {f"replacements/{cause}": count for cause, count in stats.replacements.items()}
    for name, results in stats.matches.items():
        found[f"matches/{name}"] = results.played
        found[f"win_rate/{name}"] = results.win_rate
    found["memory_bytes"] = sum(row.memory_bytes or 0 for row in stats.instances)
    found |= {f"reset_s_p95/{kind}": took.p95 for kind, took in stats.reset_s.items()}
    if stats.recovery_s is not None:
        found["recovery_s_max"] = stats.recovery_s.max
    return found
