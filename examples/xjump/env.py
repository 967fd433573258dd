"""`XJumpEnv` is an env in which the hero climbs a tower that sinks faster and faster.

apt-get install --no-install-recommends xjump xvfb
pip install ".[screen]"
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from gymnasium import spaces

from examples.xjump.picture import SIZE, floor_of, is_over
from sc2pool.realtime.env import RealTimeEnv, StepResult
from sc2pool.realtime.screen.capture import Frame, shrunk
from sc2pool.realtime.screen.window import GameWindow

ACTIONS: Final = ((), ("Left",), ("Right",), ("Up",), ("Left", "Up"), ("Right", "Up"))
"""The keys that each action holds down: stand, run, jump, run and jump."""
_BEGINS_WITHIN_S: Final = 20.0


class XJumpEnv(RealTimeEnv[Frame, np.int64]):
    """xjump on a virtual display, at ten decisions a second.

    The observation is the picture in grey, 1 × 84 × 84, uint8. The action is `Discrete(6)`, see
    `ACTIONS`. The reward is the number of floors climbed. An episode is terminated when the hero is
    below the tower. The info has `floor`, the highest floor of the episode.
    """

    observation_space = spaces.Box(0, 255, (1, 84, 84), np.uint8)
    action_space = spaces.Discrete(len(ACTIONS))
    period_s = 0.1

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._window = GameWindow.start(
            ["xjump"], size=SIZE, how_to_install="on Debian and Ubuntu: apt-get install xjump xvfb"
        )
        self.game_pid = self._window.pid

    def begin(self, options: dict[str, Any]) -> None:  # noqa: ARG002 - there are none
        self._window.hold(())
        if not is_over(self._window.colours()):  # the game has no key that ends an episode
            self._window.close()
            self._start()
        self.wait_until(self._begins, _BEGINS_WITHIN_S, "a new tower")
        self._floor = 1

    def _begins(self) -> bool:
        """Press the key that begins a game, and return whether a game has begun."""
        self._window.press("space")
        picture = self._window.colours()
        return not is_over(picture) and floor_of(picture) == 1

    def act(self, action: np.int64) -> None:
        self._window.hold(ACTIONS[int(action)])

    def observe(self) -> StepResult[Frame]:
        picture, before = self._window.colours(), self._floor
        self._floor = floor_of(picture) or before  # use the old floor if the number is half drawn
        reward, info = self._floor - before, {"floor": self._floor}
        seen = shrunk(picture[..., ::-1], 84, 84)
        return StepResult(seen, reward, is_over(picture), info=info)

    def log_tail(self) -> str:
        return self._window.log_tail()

    def close(self) -> None:
        super().close()
        self._window.close()
