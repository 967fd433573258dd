"""`SC2GymEnv`: a pool of one as a gymnasium `Env`.

The game and its event loop live in a worker of their own, so this also works where a loop runs
already (a notebook). Rules are gymnasium's: no autoreset; a step after the episode's end is an
error until `reset`.
"""

from __future__ import annotations

import os
from typing import Any

import gymnasium
from gymnasium.error import ResetNeeded

from sc2pool.config import PoolConfig
from sc2pool.envs.specs import task_spec
from sc2pool.pool.ipc.layout import Array
from sc2pool.pool.pool import Pool
from sc2pool.pool.report.stats import PoolStats
from sc2pool.tasks.definition import TaskDefinition


class SC2GymEnv(gymnasium.Env[Any, Any]):
    """One StarCraft II game.

    Args:
        task: a built-in task's name, or a subclass of `Task` or `RLBotAI`.
        game: see `SubprocSC2VecEnv`.
        render_mode: `"rgb_array"` for a `render()` that draws the game; None for none.
        config: limits and restart policy.
        realtime: the game runs by itself and waits for no action; see `SubprocSC2VecEnv`.

    Attributes: gymnasium's, `realtime`, and the task's `step_mul`.

    Raises:
        ConfigError: unknown task or render mode, no installation, no such map.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - as gymnasium has it

    def __init__(
        self,
        task: str | type[TaskDefinition] = "MoveToBeacon",
        *,
        game: str | os.PathLike[str] = "auto",
        render_mode: str | None = None,
        config: PoolConfig | None = None,
        realtime: bool = False,
    ) -> None:
        config = config or PoolConfig()
        spec = task_spec(task, game, config, render_mode, realtime)
        self.pool = Pool([spec], one_book=True, config=config, autoreset=False)
        self.observation_space = self.pool.observation_space
        self.action_space = self.pool.action_space
        self.metadata = dict(self.pool.metadata)
        self.render_mode = spec.render_mode
        self.realtime = realtime
        self.step_mul = spec.task.step_mul
        self._over = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: repeats this and all later episodes of the env exactly.
            options: for the task, as `self.options`.

        Returns:
            The observation, an element of `observation_space`, and an info.

        Raises:
            gymnasium.error.Error: the seed is no whole number of at least 0.
            CrashLoopError, UserCodeError, ObservationError: as told by their docstrings; the env
                is closed for good then.
        """
        super().reset(seed=seed)
        if seed is not None:
            self.pool.seed(seed)
        batch = self.pool.reset(options=[options or {}])
        self._over = False
        return self.pool.row(batch, 0), batch.reset_infos[0] or {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one step of the task's `step_mul` game loops.

        Returns:
            observation, reward, terminated, truncated, info. A game that failed shows as
            truncated, with `sc2pool.fault` in the info; `reset` goes on with a new one.

        Raises:
            ActionError: the action is outside the action space.
            ResetNeeded: the episode is over, or none has begun.
        """
        if self._over:
            raise ResetNeeded("call reset() first: no episode is running")
        self.pool.send([action])
        batch = self.pool.recv()
        terminated, truncated = bool(batch.terminated[0]), bool(batch.truncated[0])
        self._over = terminated or truncated
        reward = float(batch.rewards[0])
        return self.pool.row(batch, 0), reward, terminated, truncated, batch.infos[0]

    def render(self) -> Any:
        """A frame of the game as it is now: uint8 (480, 640, 3), unless the task draws its own.

        Returns:
            None, with a warning, where no render mode was asked for.

        Raises:
            ResetNeeded: no episode has begun.
        """
        if self.render_mode is None:
            gymnasium.logger.warn(
                "render() was called, but the env has no render_mode: "
                f"{type(self).__name__}(render_mode='rgb_array') draws frames"
            )
            return None
        return self.pool.render([0])[0]

    def action_masks(self) -> Array | None:
        """Which actions are possible now; None where the task has no masks.

        Returns:
            bool, (n,) for `Discrete(n)`, (sum(nvec),) for `MultiDiscrete(nvec)`.
        """
        return self.pool.action_mask(0)

    def pause(self) -> None:
        """Stop the game until the next step or reset, or `resume`; see `SubprocSC2VecEnv`.

        Raises:
            PauseError: it could not be stopped; it goes on.
        """
        self.pool.pause()

    def resume(self) -> None:
        """Let the game go on; without effect if it is not paused."""
        self.pool.resume()

    def stats(self) -> PoolStats:
        """The pool's counters, and what each instance is doing."""
        return self.pool.stats()

    def close(self) -> None:
        """End the game and its worker; may be called again."""
        self.pool.close()
