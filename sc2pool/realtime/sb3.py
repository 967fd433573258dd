"""`PauseCallback`: pauses games in real time while Stable-Baselines3 updates the policy.

    `collect_rollouts` ─► on_rollout_end: pause ─► train() ─► first step of next rollout: resume.

The callback only pauses. The next step or reset of the env resumes the games. No step follows after
the last update, after an early end by a callback, or after an exception. If no step follows, the
games stay paused, and use no CPU.
"""

from __future__ import annotations

from stable_baselines3.common.callbacks import BaseCallback

from sc2pool.errors import ConfigError
from sc2pool.pool.pool import Pool
from sc2pool.realtime.acting import ActsWhileLearning
from sc2pool.realtime.gate import pause_figures


class PauseCallback(BaseCallback):
    """Pauses the games from a rollout's end until the next rollout's first step.

    Add the callback with `model.learn(100_000, callback=PauseCallback())`.

    The env is a `SubprocSC2VecEnv`, or a `VecEnv` of envs that have `pause` and `stats`, such as
    `PausableEnv(env, gate)`. Stable-Baselines3 itself puts a single env into a `VecEnv`.

    The callback logs two sums since the env was made. `pause/paused_s` is the time for which games
    were paused. `pause/loops_passed` is the number of game loops (or of ticks, if a game reports
    them) that passed in pauses, which should be 0.

    If another callback ends a rollout early, SB3 does not call `on_rollout_end` and does not
    update. After such an early end, the callback pauses the games when the training ends.

    Raises:
        ConfigError: The model's env cannot be paused, or the model acts while it learns, like
            `AsyncPPO`, and so needs running games during its updates.
        PauseError: A game could not be paused.
    """

    _paused = False

    def _on_training_start(self) -> None:
        if isinstance(self.model, ActsWhileLearning):
            raise ConfigError(
                f"{type(self.model).__name__} plays while it learns: PauseCallback is for SB3's "
                "own algorithms"
            )
        # Check the env before the first step, not after the first rollout.
        if self._pool() is None and not self.training_env.has_attr("pause"):
            kind = type(self.training_env.unwrapped).__name__
            raise ConfigError(
                "PauseCallback needs a SubprocSC2VecEnv or envs with a pause method, such as "
                f"PausableEnv(env, PauseGate(pid)), got {kind}"
            )

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        # Do not resume here, because the first step resumes the games when its action is ready.
        self._paused = False

    def _on_rollout_end(self) -> None:
        self._pause()
        pool = self._pool()
        every = self.training_env.env_method("stats") if pool is None else [pool.stats()]
        for name, value in pause_figures(every).items():
            self.logger.record(f"pause/{name}", value)

    def _on_training_end(self) -> None:
        if not self._paused:
            self._pause()

    def _pause(self) -> None:
        pool = self._pool()
        if pool is None:
            self.training_env.env_method("pause")
        else:
            pool.pause()
        self._paused = True

    def _pool(self) -> Pool | None:
        """The games' pool; None if each env pauses its own game."""
        pool = getattr(self.training_env.unwrapped, "pool", None)
        return pool if isinstance(pool, Pool) else None
