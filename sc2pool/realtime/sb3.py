"""`PauseDuringTraining`: games in real time stand still while Stable-Baselines3 learns.

    collect_rollouts ─► on_rollout_end: pause ─► train() ─► the next rollout's first step: go on

Rule: whatever comes next finds the games as it expects them. Who steps or resets lets them go on
without being asked to; where nothing comes next (the last update, a callback that ended the
training, an exception) they stay paused, and neither miss anything nor need the processor.
"""

from __future__ import annotations

from stable_baselines3.common.callbacks import BaseCallback

from sc2pool.errors import ConfigError
from sc2pool.pool.pool import Pool
from sc2pool.realtime.async_ppo import AsyncPPO


class PauseDuringTraining(BaseCallback):
    """Pauses the games from the end of each rollout until the first step of the next.

        model.learn(100_000, callback=PauseDuringTraining())

    It records `pause/paused_s` and `pause/loops_passed`, sums since the pool was made: how long
    games were paused, and how many game loops passed meanwhile, which should be 0.

    Where another callback ends the rollout early, SB3 calls no `on_rollout_end`; then there is no
    update either, and the games are paused at the end of the training.

    Raises:
        ConfigError: the model's env is not a `SubprocSC2VecEnv`, nor wraps one; or it is an
            `AsyncPPO`, whose games are not to be paused.
        PauseError: a game could not be stopped.
    """

    def __init__(self, verbose: int = 0) -> None:
        super().__init__(verbose)
        self._at_rest = False

    def _on_training_start(self) -> None:
        if isinstance(self.model, AsyncPPO):
            raise ConfigError("AsyncPPO plays on while it learns: PauseDuringTraining is for PPO")
        self._pool()  # a wrong env is told before the first step, not after the first rollout

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        # Its first step lets the games go on, when its action is there: sooner would be too soon.
        self._at_rest = False

    def _on_rollout_end(self) -> None:
        pool = self._pool()
        pool.pause()
        self._at_rest = True
        pauses = pool.stats()["pauses"]
        self.logger.record("pause/paused_s", pauses["paused_s"])
        self.logger.record("pause/loops_passed", pauses["loops"])

    def _on_training_end(self) -> None:
        if not self._at_rest:
            self._pool().pause()
            self._at_rest = True

    def _pool(self) -> Pool:
        env = self.training_env.unwrapped
        pool = getattr(env, "pool", None)
        if not isinstance(pool, Pool):
            raise ConfigError(
                f"PauseDuringTraining needs a SubprocSC2VecEnv, got {type(env).__name__}"
            )
        return pool
