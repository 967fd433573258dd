"""The recipe: the usual bridge from python-sc2 to SB3, as a small fair baseline.

Many bridges have this recipe's structure. Each env of SB3's `SubprocVecEnv` starts a process for
python-sc2, because python-sc2 runs its own event loop. The env's `step` sends an action through one
queue, and `on_step` of python-sc2's bot returns the transition through another queue.

The recipe avoids needless delays. The bridge does not sleep, log or poll, and `on_step` waits in a
blocking `get`. The task computes observations and commands from the raw observation, as in the
other compared programs. python-sc2's own loop and queues are unchanged.
"""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.queues import Queue
from typing import Any

import gymnasium
import numpy as np

START_METHOD = "spawn"
STARTED_WITHIN_S = 120.0
ENDED_WITHIN_S = 5.0


class RecipeEnv(gymnasium.Env):
    """One game at a time under python-sc2's `run_game`; each episode has a new game.

    Args:
        map_name: a map for which `bench.tasks` has a task.
        root: the installation's folder.
    """

    def __init__(self, map_name: str, root: str) -> None:
        from bench.tasks import task_on  # noqa: PLC0415

        task = task_on(map_name)
        self.observation_space = task.observation_space
        self.action_space = task.action_space
        self._arguments = (map_name, root)
        self._process: Any = None
        # Python forbids children of SB3's daemonic workers, so the daemon flag is unset.
        multiprocessing.current_process()._config["daemon"] = False

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.close()
        context = multiprocessing.get_context(START_METHOD)
        self._actions = context.Queue()
        self._transitions = context.Queue()
        self._process = context.Process(
            target=play,
            args=(*self._arguments, self._actions, self._transitions),
            daemon=True,  # an interrupted worker does not wait for a daemonic process
        )
        self._process.start()
        return self._get(timeout_s=STARTED_WITHIN_S)[0], {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self._actions.put(action)
        return (*self._get(), {})

    def _get(self, timeout_s: float | None = None) -> Any:
        transition = self._transitions.get(timeout=timeout_s)
        if transition is None:
            raise RuntimeError("python-sc2 ended")
        return transition

    def close(self) -> None:
        if self._process is not None:
            self._actions.put(None)
            self._process.join(ENDED_WITHIN_S)
            self._process.kill()
            self._process.join()
            self._process = None


def play(map_name: str, root: str, actions: Queue[Any], transitions: Queue[Any]) -> None:
    """Play one game, in the process of python-sc2."""
    os.environ["SC2PATH"] = root  # python-sc2 reads SC2PATH when it is imported
    from loguru import logger  # noqa: PLC0415
    from sc2 import maps  # noqa: PLC0415
    from sc2.data import Race  # noqa: PLC0415
    from sc2.main import run_game  # noqa: PLC0415
    from sc2.player import Bot  # noqa: PLC0415

    from bench.baselines.recipe_bot import RecipeBot  # noqa: PLC0415
    from bench.tasks import task_on  # noqa: PLC0415

    logger.remove()
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), 1)  # the games inherit this stdout and write to it
    try:
        bot = RecipeBot(task_on(map_name), actions, transitions)
        run_game(maps.get(map_name), [Bot(Race.Terran, bot)], realtime=False)
    finally:
        transitions.put(None)
