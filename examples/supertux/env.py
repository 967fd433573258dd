"""`SuperTuxEnv`: run to the right, in a game that does not wait for actions.

The game runs 66 ticks a second, with or without actions. A step sets which keys are held down, and
returns at the end of its decision period of seven ticks (105 ms). The keys stay down until the next
step. The elastic clock counts periods in ticks of the game, so a pause causes no misses.

Rules: if the game fails, the env raises `GameFault`, and a pool replaces the env. The env's
processes end with the env, and with the thread that made it.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import gymnasium
import numpy as np
from gymnasium import spaces

from examples.supertux.clock import ElasticClock
from examples.supertux.game import TICK_S, State, SuperTux
from examples.supertux.needs import check_installed
from sc2pool.platform import WINDOWS
from sc2pool.realtime.screen import desktop
from sc2pool.realtime.screen.capture import SMALL_SHAPE, Frame, Screen
from sc2pool.realtime.screen.keyboard import Keyboard, Keys
from sc2pool.realtime.screen.virtual_display import Display, VirtualDisplay

ACTIONS: Final = ((), ("Right",), ("space",), ("Right", "space"))
"""The keys that each action holds down: nothing, run, jump, run and jump."""
PERIOD_TICKS: Final = 7
"""Length of a decision period."""
LANDING_TICKS: Final = 14
"""The time from an episode's beginning until Tux stands on the ground."""
TIME_LIMIT_TICKS: Final = 2000
"""An episode is truncated after this time, half a minute."""
GOAL_PX: Final = 2900.0
"""The horizontal position of the goal, which ends the episode."""
_SCREEN_PX: Final = 640.0
"""Width of the game's view."""
_STEP_WITHIN_S: Final = 5.0
_RESET_WITHIN_S: Final = 20.0
_SCALE: Final = np.array([GOAL_PX, 480.0, 320.0, 700.0], np.float32)
"""Divisors of x, y and the two speeds."""
_STATE_SIZE: Final = len(_SCALE) + 2 + len(ACTIONS)

Observation = dict[str, Any]


class SuperTuxEnv(gymnasium.Env[Observation, np.int64]):
    """SuperTux on a level for training, on its own virtual display, or on Windows' desktop.

    Observation, a dict:
        `frame`: the screen in grey, 1 × 60 × 80, uint8.
        `state`: float32 (10,): x and y, horizontal and vertical speed, elapsed fraction of the time
            limit, delay of the last action (in periods), current action (one-hot).

    Action: `Discrete(4)`, see `ACTIONS`. Reward: progress to the right, in screens of 640 pixels.
    Terminated when Tux dies or reaches the goal, truncated after 2,000 ticks.

    Info: `tick` (of the game's process), `late_ticks` (delay of this step's action), `misses`
    (periods of this episode without a new action), `x` (pixels), `died`, `unattended` (Tux died
    while an action was late by a period or more), `goal`.

    The game has no seed, so `reset(seed=…)` does not make episodes repeatable.

    Raises:
        ConfigError: the game, Xvfb or a Python package is not installed.
        GameFault: a program does not start, has ended, or does not respond.
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

    def __init__(self, render_mode: str | None = None) -> None:
        check_installed()
        self.render_mode = render_mode
        self._display: Display
        self._keyboard: Keys
        with ExitStack() as owned:
            folder = Path(owned.enter_context(tempfile.TemporaryDirectory(prefix="supertux-")))
            if WINDOWS:
                self._display = self._keyboard = desktop.Desktop()
            else:
                self._display = display = VirtualDisplay(folder)
                owned.callback(display.close)
                self._keyboard = Keyboard(display.name)
            owned.callback(self._keyboard.close)
            self._screen = Screen(self._display.name, self._display.area)
            owned.callback(self._screen.close)
            self._game = SuperTux.started(self._display.name, folder, self._keyboard)
            owned.callback(self._game.close)
            self._owned = owned.pop_all()
        self.game_pid = self._game.pid
        """Process id of the game, for a `PauseGate`."""

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002 - gymnasium's signature
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        with self._display.in_use():
            state = self._begin()
            return self._observation(state), self._info(state)

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        with self._display.in_use():
            before, state = self._before, self._act(int(action))
            reward = (state.x - before.x) / _SCREEN_PX
            terminated = state.died or state.x >= GOAL_PX
            truncated = not terminated and state.tick - self._began >= TIME_LIMIT_TICKS
            if terminated or truncated:
                self._keyboard.hold(())
            return self._observation(state), reward, terminated, truncated, self._info(state)

    def _begin(self) -> State:
        self._keyboard.hold(())
        self._action = 0
        self._unattended = False
        self._began = self._game.begin_episode(_RESET_WITHIN_S).tick
        # Wait until Tux stands: he begins in the air, where he cannot jump.
        landed = self._began + LANDING_TICKS
        self._before = self._game.wait_for(lambda state: state.tick >= landed, _STEP_WITHIN_S)
        self._clock = ElasticClock(PERIOD_TICKS, self._before.tick)
        return self._before

    def _act(self, action: int) -> State:
        """The state at the end of the action's period, or at Tux's death."""
        self._action = action
        self._keyboard.hold(ACTIONS[action])
        state = self._game.state
        self._clock.begin_period(state.tick)
        self._unattended = state.died and self._clock.late >= PERIOD_TICKS
        self._before = self._game.wait_for(self._period_is_over, _STEP_WITHIN_S)
        return self._before

    def _period_is_over(self, state: State) -> bool:
        return state.died or state.tick >= self._clock.due

    def _observation(self, state: State) -> Observation:
        vector = np.zeros(_STATE_SIZE, np.float32)
        vector[:4] = (state.x, state.y, state.speed_x, state.speed_y) / _SCALE
        vector[4] = (state.tick - self._began) / TIME_LIMIT_TICKS
        vector[5] = self._clock.late / PERIOD_TICKS
        vector[6 + self._action] = 1.0
        return {"frame": self._screen.small(), "state": vector.clip(-5.0, 5.0)}

    def _info(self, state: State) -> dict[str, Any]:
        return {
            "tick": state.tick,
            "late_ticks": self._clock.late,
            "misses": self._clock.misses,
            "x": state.x,
            "died": state.died,
            "unattended": self._unattended,
            "goal": state.x >= GOAL_PX,
        }

    def render(self) -> Frame | None:
        """The screen in colours, 240 × 320 × 3, uint8, with `render_mode="rgb_array"`."""
        return self._screen.colours() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """End the game and the display, and delete their files; may be called again."""
        self._owned.close()
