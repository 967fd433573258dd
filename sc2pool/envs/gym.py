"""`SC2GymEnv`: a pool of one game as a gymnasium `Env`.

The game and its event loop have their own worker, so `SC2GymEnv` also works in a process that
already runs an event loop (a notebook). Rules are gymnasium's: there is no autoreset, and a step
between an episode's end and the next `reset` is an error.
"""

from __future__ import annotations

import logging
import multiprocessing
from typing import Any, Unpack

import gymnasium
from gymnasium.error import ResetNeeded

from sc2pool.envs.shared_keywords import (
    GameKeywords,
    TaskChoice,
    check_keywords,
    make_players,
)
from sc2pool.pool.queues.layout import Array
from sc2pool.pool.statistics import PoolStats
from sc2pool.pool.vec_pool import whole_mask
from sc2pool.tasks.registry import DEFAULT_TASK

_FIRST_OF_ASYNC = "Worker<AsyncVectorEnv>-0"
"""gymnasium's name for the process of the first env of an `AsyncVectorEnv`."""
_ASYNC_OF_GAMES = (
    "gymnasium's AsyncVectorEnv adds a process and a copy to each game's step, and replaces no "
    "game that fails: SC2VectorEnv is faster, which make_vec makes without vectorization_mode"
)

log = logging.getLogger(__name__)


class SC2GymEnv(gymnasium.Env[Any, Any]):
    """One StarCraft II game.

    Args:
        task: A built-in task's name, or a subclass of `Task` or `RLBotAI`.

    The other keywords are those of `SubprocSC2VecEnv`, except n, num_envs, seed and spares.

    Attributes: gymnasium's own, `realtime`, `step_mul` (game loops per step), and `pool`, the pool.

    Raises:
        ConfigError: a wrong keyword, an unknown task or render mode, no installation, a missing
            map, or a task with several learning players.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - as gymnasium declares it
        "render_modes": ["human", "rgb_array"]
    }

    def __init__(
        self,
        task: TaskChoice = DEFAULT_TASK,
        **games: Unpack[GameKeywords],
    ) -> None:
        check_keywords(type(self).__name__, games, GameKeywords)
        if multiprocessing.current_process().name == _FIRST_OF_ASYNC:
            log.warning(_ASYNC_OF_GAMES)
        self._players = players = make_players(n=1, task=task, **games)
        players.require_one_row(type(self).__name__)
        self.pool = players.make_pool(autoreset=False)
        self.observation_space = self.pool.observation_space
        self.action_space = self.pool.action_space
        self.metadata = dict(self.pool.metadata)
        self.render_mode = self.pool.render_mode
        self.realtime = players.realtime
        self.step_mul = players.step_mul
        self._over = True

    def __repr__(self) -> str:
        return self._players.describe(self, self.pool)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: Equal seeds exactly repeat this episode and all later episodes of the env. The
                k-th episode gets the game seed that `SubprocSC2VecEnv` gives its k-th episode.
            options: The options, which the task reads as `self.options`.

        Returns:
            The observation, an element of `observation_space`, and an info.

        Raises:
            gymnasium.error.Error: the seed is not a whole number of at least 0.
            CrashLoopError, UserCodeError, ObservationError: see their docstrings; every later call
                raises `ClosedError`.
        """
        super().reset(seed=seed)
        if seed is not None:
            self.pool.seed(seed)
        batch = self.pool.reset(options=[options or {}])
        self._over = False
        return self.pool.row(batch, 0), batch.reset_infos[0] or {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one step, which is `step_mul` game loops.

        Returns:
            observation, reward, terminated, truncated, info. After a fault of the game, truncated
            is True and the info has `sc2pool.fault`; the next `reset` begins on a new game.

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
        """A frame that shows the current state of the game.

        Returns:
            uint8 (480, 640, 3), unless the task draws other frames. None in the mode `"human"`,
            whose web page shows the game without this method. None, with a warning, if the env has
            no render mode.

        Raises:
            ResetNeeded: no episode has begun.
        """
        return self._players.frame(self)

    def action_masks(self) -> Array | None:
        """The mask of the actions that are possible now; None if the task has no masks.

        Returns:
            A bool array of shape (n,) for `Discrete(n)`, or (sum(nvec),) for `MultiDiscrete(nvec)`.
            All elements are True if the task returned None.
        """
        mask = self.pool.action_mask(0)
        task = self._players.task
        has_masks = task is not None and hasattr(task.task, "action_masks")
        return whole_mask(mask, self.action_space) if has_masks else mask

    def pause(self) -> None:
        """Stop the game until the next step, reset or `resume`; see `SubprocSC2VecEnv.pause`.

        Raises:
            PauseError: the game could not be stopped; it continues.
        """
        self.pool.pause()

    def resume(self) -> None:
        """Let the game continue; without effect if it is not paused."""
        self.pool.resume()

    def stats(self) -> PoolStats:
        """The pool's counters, and the state of each instance."""
        return self.pool.stats()

    def close(self) -> None:
        """End the game and its worker process; may be called again."""
        self.pool.close()
