"""`SuperTuxEnv` is an env in which Tux runs to the right. The game does not wait for actions.

The game runs 66 ticks a second, with or without actions. A step chooses the keys that are held
down, and returns at the end of a decision period of seven ticks (105 ms). The keys stay down until
the next step. `RealTimeEnv` counts periods in ticks of the game, so no period is missed in a pause.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import numpy as np
from gymnasium import spaces

from examples.supertux.game import TICK_S, State, SuperTux
from sc2pool.realtime.env import RealTimeEnv, StepResult
from sc2pool.realtime.screen.capture import Frame

ACTIONS: Final = ((), ("Right",), ("space",), ("Right", "space"))
"""The keys that each action holds down: nothing, run, jump, run and jump."""
PERIOD_TICKS: Final = 7
"""Length of a decision period in ticks."""
LANDING_TICKS: Final = 14
"""The number of ticks from an episode's beginning until Tux stands on the ground."""
TIME_LIMIT_TICKS: Final = 2000
"""The number of ticks, half a minute, after which an episode is truncated."""
GOAL_PX: Final = 2900.0
"""The horizontal position, in pixels, of the goal, which ends the episode."""
SMALL_SHAPE: Final = (1, 60, 80)
"""Shape of a small frame: channel, rows, columns, as Stable-Baselines3's CNN expects it."""
_SCREEN_PX: Final = 640.0
"""Width, in pixels, of the part of the level that the game shows."""
_RESET_WITHIN_S: Final = 20.0
_SCALE: Final = np.array([GOAL_PX, 480.0, 320.0, 700.0], np.float32)
"""The divisors by which x, y, horizontal and vertical speed are scaled."""
_STATE_SIZE: Final = len(_SCALE) + 2 + len(ACTIONS)

Observation = dict[str, Any]


class SuperTuxEnv(RealTimeEnv[Observation, np.int64]):
    """SuperTux on a level for training, on a virtual display of its own or on Windows' desktop.

    The observation is a dict. `frame`: The screen in grey, 1 × 60 × 80, uint8. `state`: An array,
    float32 (10,), of x and y, horizontal and vertical speed, elapsed fraction of the time limit,
    delay of the last action (in periods), current action (one-hot).

    The action is `Discrete(4)`, see `ACTIONS`. The reward is the progress to the right, in screens
    of 640 pixels. An episode is terminated when Tux dies or reaches the goal, and truncated after
    2,000 ticks.

    The info has the keys of `RealTimeEnv`, and also `tick` (of the game's process), `late_ticks`
    (delay of this step's action), `misses` (periods of this episode without a new action), `x`
    (pixels), `died`, `unattended` (Tux died while an action was late by a period or more) and
    `goal`.

    The game has no seed, so `reset(seed=…)` does not make episodes repeatable.

    Raises:
        ConfigError: The game, Xvfb or a Python package is not installed.
        GameFault: A program does not start, has ended, or does not respond.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - gymnasium declares it as an instance attribute
        "render_modes": ["rgb_array"],
        "render_fps": round(1 / (PERIOD_TICKS * TICK_S)),
    }
    observation_space = spaces.Dict(
        {
            "frame": spaces.Box(0, 255, SMALL_SHAPE, np.uint8),
            "state": spaces.Box(-5.0, 5.0, (_STATE_SIZE,), np.float32),
        }
    )
    action_space = spaces.Discrete(len(ACTIONS))
    period_s = PERIOD_TICKS * TICK_S
    period_ticks = PERIOD_TICKS

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self._episode = 0
        with ExitStack() as owned:
            folder = Path(owned.enter_context(tempfile.TemporaryDirectory(prefix="supertux-")))
            self._supertux = game = SuperTux(folder)
            owned.callback(game.close)
            self._owned = owned.pop_all()
        self._window = game.window
        self.game_pid = game.window.pid

    def log_tail(self) -> str:
        return self._window.log_tail()

    def ticks(self) -> int:
        return self._supertux.state.tick

    def begin(self, options: dict[str, Any]) -> None:  # noqa: ARG002 - there are none
        self._window.hold(())
        self._episode += 1
        self._supertux.write_episode(self._episode)
        self.wait_until(
            lambda: self._supertux.state.episode == self._episode, _RESET_WITHIN_S, "the episode"
        )
        self._before = self._supertux.state
        self._began = self._before.tick
        # Wait until Tux stands, because he begins in the air and cannot jump in the air.
        landed = self._began + LANDING_TICKS
        self.wait_until(lambda: self.ticks() >= landed, _RESET_WITHIN_S, "the landing")
        self._action, self._late_ticks, self._misses, self._unattended = 0, 0, 0, False

    def act(self, action: np.int64) -> None:
        self._action = int(action)
        self._window.hold(ACTIONS[self._action])
        self._late_ticks = int(self.gap_s / TICK_S)
        self._misses += self._late_ticks // PERIOD_TICKS
        self._unattended = self._supertux.state.died and self._late_ticks >= PERIOD_TICKS

    def observe(self) -> StepResult[Observation]:
        before, state = self._before, self._supertux.state
        self._before = state
        reward = (state.x - before.x) / _SCREEN_PX
        terminated = state.died or state.x >= GOAL_PX
        truncated = not terminated and state.tick - self._began >= TIME_LIMIT_TICKS
        if terminated or truncated:
            self._window.hold(())
        seen = self._observation(state)
        return StepResult(seen, reward, terminated, truncated, self._info(state))

    def _observation(self, state: State) -> Observation:
        vector = np.zeros(_STATE_SIZE, np.float32)
        vector[:4] = (state.x, state.y, state.speed_x, state.speed_y) / _SCALE
        vector[4] = (state.tick - self._began) / TIME_LIMIT_TICKS
        vector[5] = self._late_ticks / PERIOD_TICKS
        vector[6 + self._action] = 1.0
        return {"frame": self._window.grey(*SMALL_SHAPE[1:]), "state": vector.clip(-5.0, 5.0)}

    def _info(self, state: State) -> dict[str, Any]:
        return {
            "tick": state.tick,
            "late_ticks": self._late_ticks,
            "misses": self._misses,
            "x": state.x,
            "died": state.died,
            "unattended": self._unattended,
            "goal": state.x >= GOAL_PX,
        }

    def render(self) -> Frame | None:
        """The screen in colours, 240 × 320 × 3, uint8; None without `render_mode="rgb_array"`."""
        return self._window.colours() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """End the game and the display, and delete their files. May be called again."""
        super().close()
        self._owned.close()
