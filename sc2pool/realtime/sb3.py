"""`PauseCallback`: pauses games in real time while Stable-Baselines3 updates the policy.

    collect_rollouts ─► on_rollout_end: pause ─► train() ─► first step of the next rollout: resume

Rule: the callback only pauses. The next step or reset of the env resumes the games. After the last
update, an early end by a callback, or an exception, no step follows. Then the games stay paused:
they miss nothing and use no CPU.
"""

from __future__ import annotations

from stable_baselines3.common.callbacks import BaseCallback

from sc2pool.errors import ConfigError
from sc2pool.pool.pool import Pool
from sc2pool.realtime.acting.learner import ActsWhileLearning


class PauseCallback(BaseCallback):
    """Pauses the games from the end of each rollout until the first step of the next.

        model.learn(100_000, callback=PauseCallback())

    It logs two sums since the pool was made. `pause/paused_s` is the time for which games were
    paused. `pause/loops_passed` is the number of game loops that passed in pauses, which should be
    0.

    If another callback ends the rollout early, SB3 neither calls `on_rollout_end` nor updates. Then
    the games are paused at the end of the training.

    Raises:
        ConfigError: the model's env is not a `SubprocSC2VecEnv` (or a wrapper of one), or the model
            acts while it learns, like `AsyncPPO`, and needs running games during its updates.
        PauseError: a game could not be paused.
    """

    def __init__(self, verbose: int = 0) -> None:
        super().__init__(verbose)
        self._paused = False

    def _on_training_start(self) -> None:
        if isinstance(self.model, ActsWhileLearning):
            raise ConfigError(
                f"{type(self.model).__name__} plays while it learns: PauseCallback is for SB3's "
                "own algorithms"
            )
        self._pool()  # check the env before the first step, not after the first rollout

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        # No resume here: the first step resumes the games, when its action is ready.
        self._paused = False

    def _on_rollout_end(self) -> None:
        pool = self._pool()
        pool.pause()
        self._paused = True
        pauses = pool.stats().pauses
        self.logger.record("pause/paused_s", pauses.paused_s)
        self.logger.record("pause/loops_passed", pauses.loops)

    def _on_training_end(self) -> None:
        if not self._paused:
            self._pool().pause()
            self._paused = True

    def _pool(self) -> Pool:
        env = self.training_env.unwrapped
        pool = getattr(env, "pool", None)
        if not isinstance(pool, Pool):
            raise ConfigError(f"PauseCallback needs a SubprocSC2VecEnv, got {type(env).__name__}")
        return pool
