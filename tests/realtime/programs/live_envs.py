"""Envs for `ticking_game.py`: `Seconds` counts seconds, `Ticks` counts the game's ticks."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from sc2pool.realtime.env import RealTimeEnv, StepResult

GAME = Path(__file__).with_name("ticking_game.py")
STAY, RIGHT = 0, 1


class Seconds(RealTimeEnv):
    """The player moves to the right. The reward is the distance; position 200 ends the episode."""

    observation_space = spaces.Box(0, 1e6, (1,), np.float32)
    action_space = spaces.Discrete(2)
    period_s = 0.05
    frozen_after_s = None

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ticking-")
        self._file = Path(self._folder.name) / "state"
        self._file.write_text(f"{0:9d} {0:9d} {0:9d}\n")
        self.game = subprocess.Popen(
            [sys.executable, str(GAME), str(self._file)], stdin=subprocess.PIPE
        )
        self.game_pid = self.game.pid

    def say(self, command: str) -> None:
        assert self.game.stdin is not None
        self.game.stdin.write(f"{command}\n".encode())
        self.game.stdin.flush()

    def state(self) -> list[int]:
        return [int(number) for number in self._file.read_text().split()]

    def begin(self, options: dict[str, Any]) -> None:
        episode = self.state()[1]
        self.say("begin")
        self.wait_until(lambda: self.state()[1] > episode, 60, "the next episode")
        self._before = 0

    def act(self, action: np.int64) -> None:
        self.say(f"move {action}")

    def observe(self) -> StepResult[np.ndarray]:
        tick, _, position = self.state()
        reward, self._before = position - self._before, position
        seen = np.array([position], np.float32)
        return StepResult(seen, reward, position >= 200, info={"tick": tick})

    def close(self) -> None:
        super().close()
        self.game.kill()
        self.game.communicate()
        self._folder.cleanup()


class Ticks(Seconds):
    period_ticks = 5

    def ticks(self) -> int:
        return self.state()[0]
