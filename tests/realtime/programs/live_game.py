"""A small live program without an interface, and an env that plays it.

As a program it prints `TICK PAUSED` every 10 ms while it runs, and once when it pauses. A line `p`
on its standard input is its pause key. It has these options:

    paused   it starts paused
    no-key   its pause key does nothing
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

TICK_S = 0.01
PERIOD_TICKS = 2


class LiveGame:
    """The running program, and a thread that reads its ticks."""

    def __init__(self, *options: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-c", PROGRAM, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.pid = self._process.pid
        self.tick = -1
        self.paused = False
        self.presses = 0
        self._began = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._began.wait(60.0)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            tick, paused = line.split()
            self.tick, self.paused = int(tick), paused == "1"
            self._began.set()

    def press_p(self) -> None:
        """Press the pause key."""
        self.presses += 1
        assert self._process.stdin is not None
        self._process.stdin.write("p\n")

    def read_tick(self) -> int:
        return self.tick

    def picture(self) -> NDArray[np.int64]:
        """A picture that moves while the game runs, with a pause menu."""
        return np.array([self.tick, self.paused])

    def still_picture(self) -> NDArray[np.int64]:
        """A picture that does not move, with a pause menu."""
        return np.array([self.paused])

    def kill(self) -> None:
        """End the program, and wait for its end."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self.kill()
        self._reader.join()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdout.close()
        with suppress(OSError):  # a key was pressed after the end
            self._process.stdin.close()


class LiveEnv(gymnasium.Env[NDArray[np.float32], int]):
    """A step takes two ticks of the game; an episode has twenty steps. Info: `tick`."""

    observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self.game = LiveGame()
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        self._steps = 0
        return self._observation(), {"tick": self.game.tick}

    def step(self, action: int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        due, deadline_s = self.game.tick + PERIOD_TICKS, time.monotonic() + 60.0
        while self.game.tick < due:
            assert time.monotonic() < deadline_s, "the game makes no ticks"
            time.sleep(TICK_S / 4)
        self._steps += 1
        info = {"tick": self.game.tick}
        return self._observation(), float(action), False, self._steps == 20, info

    def _observation(self) -> NDArray[np.float32]:
        return np.array([self._steps / 20], np.float32)

    def close(self) -> None:
        self.game.close()


PROGRAM = f"""
import sys, threading, time
paused = "paused" in sys.argv
def read_keys():
    global paused
    for _ in sys.stdin:
        paused = paused if "no-key" in sys.argv else not paused
threading.Thread(target=read_keys, daemon=True).start()
tick, said = 0, None
while True:
    tick += not paused
    line = f"{{tick}} {{int(paused)}}\\n"
    if line != said:
        said = line
        try:
            sys.stdout.write(line)
            sys.stdout.flush()
        except OSError:  # the reader has ended, and the game plays on
            pass
    time.sleep({TICK_S})
"""
