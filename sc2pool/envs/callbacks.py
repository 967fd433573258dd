"""What a pool counts, in Stable-Baselines3's log: TensorBoard, CSV, wherever the model logs to.

model.learn(100_000, callback=PoolStatsCallback())
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from sc2pool.envs.sb3 import SubprocSC2VecEnv
from sc2pool.errors import ConfigError

_RECORD_EVERY_S = 1.0


class PoolStatsCallback(BaseCallback):
    """Records the pool's counters under `pool/`, with the model's own figures.

    After each rollout, but at most once a second: `pool/steps_per_s`, `pool/episodes`,
    `pool/launches`, `pool/resets`, `pool/faults`, `pool/recycles/CAUSE` for each cause so far,
    `pool/memory_bytes` (of all games together), `pool/reset_s_p95/RUNG`, `pool/recovery_s_max`.

    Raises:
        ConfigError: the model's env is not a `SubprocSC2VecEnv`, nor wraps one.
    """

    def __init__(self, verbose: int = 0) -> None:
        super().__init__(verbose)
        self._recorded_at_s: float | None = None
        self._recorded_steps = 0

    def _on_training_start(self) -> None:
        self._recorded_at_s = None
        self._pool()  # a wrong env is told before the first step, not after the first rollout

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        now_s = time.monotonic()
        since_s = None if self._recorded_at_s is None else now_s - self._recorded_at_s
        if since_s is not None and since_s < _RECORD_EVERY_S:
            return
        stats = self._pool().stats()
        steps = int(stats["env_steps"])
        if since_s is not None:
            self.logger.record("pool/steps_per_s", (steps - self._recorded_steps) / since_s)
        self._recorded_at_s, self._recorded_steps = now_s, steps
        for name, value in figures(stats).items():
            self.logger.record(f"pool/{name}", value)

    def _pool(self) -> SubprocSC2VecEnv:
        env = self.training_env.unwrapped
        if not isinstance(env, SubprocSC2VecEnv):
            raise ConfigError(
                f"PoolStatsCallback needs a SubprocSC2VecEnv, got {type(env).__name__}"
            )
        return env


def figures(stats: Mapping[str, Any]) -> dict[str, float]:
    """The pool's stats (see `Pool.stats`) as single figures."""
    recycles = stats["recycles"]
    told: dict[str, float] = {name: stats[name] for name in ("episodes", "launches", "resets")}
    told["faults"] = sum(n for cause, n in recycles.items() if not cause.startswith("soft-"))
    told |= {f"recycles/{cause}": count for cause, count in recycles.items()}
    told["memory_bytes"] = sum(row["memory_bytes"] or 0 for row in stats["instances"])
    told |= {f"reset_s_p95/{rung or 'first'}": s["p95"] for rung, s in stats["reset_s"].items()}
    if stats["recovery_s"]["count"]:
        told["recovery_s_max"] = stats["recovery_s"]["max"]
    return told
