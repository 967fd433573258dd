"""A small live program without an interface, and an env that plays it.

Every 10 ms the program writes a number into the file that its first argument names. The number is
twice the game's tick, plus one in a pause. The program prints a line when it has begun. A line `p`
on its standard input acts as its pause key. With the option `paused`, the program starts paused.
With the option `no-key`, its pause key has no effect.
"""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

TICK_S = 0.01
PERIOD_TICKS = 2
STATE_BYTES = 8


class LiveGame:
    """The running program.

    Its state is read from shared memory, so no old state can arrive during a pause.
    """

    def __init__(self, *options: str) -> None:
        descriptor, name = tempfile.mkstemp()
        self._file = Path(name)
        os.truncate(descriptor, STATE_BYTES)
        self._memory = mmap.mmap(descriptor, STATE_BYTES)
        os.close(descriptor)
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-c", PROGRAM, name, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.pid = self._process.pid
        self.presses = 0
        assert self._process.stdout is not None
        told = self._process.stdout.readline()
        assert told == "began\n"
        with suppress(PermissionError):  # Windows does not delete an open file
            self._file.unlink()

    def _state(self) -> tuple[int, bool]:
        state = int.from_bytes(self._memory[:], "little")
        return state // 2, state % 2 == 1

    @property
    def tick(self) -> int:
        return self._state()[0]

    @property
    def paused(self) -> bool:
        return self._state()[1]

    def press_p(self) -> None:
        """Press the pause key."""
        self.presses += 1
        assert self._process.stdin is not None
        self._process.stdin.write("p\n")

    def read_tick(self) -> int:
        return self.tick

    def picture(self) -> NDArray[np.int64]:
        """A picture that moves while the game runs, with a pause menu."""
        return np.array(self._state())

    def still_picture(self) -> NDArray[np.int64]:
        """A picture that does not move, with a pause menu."""
        return np.array([self.paused])

    def kill(self) -> None:
        """End the program, and wait for its end."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self.kill()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdout.close()
        with suppress(OSError):  # raised if the program has ended
            self._process.stdin.close()
        self._memory.close()
        self._file.unlink(missing_ok=True)


class LiveEnv(gymnasium.Env[NDArray[np.float32], int]):
    """An env of the game, with two ticks per step and twenty steps per episode.

    The info has the game's `tick`.
    """

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
import mmap, sys, threading, time
with open(sys.argv[1], "r+b") as file:
    memory = mmap.mmap(file.fileno(), {STATE_BYTES})
paused = "paused" in sys.argv
def read_keys():
    global paused
    for _ in sys.stdin:
        paused = paused if "no-key" in sys.argv else not paused
threading.Thread(target=read_keys, daemon=True).start()
tick = 0
memory[0] = paused
print("began", flush=True)
while True:
    is_paused = paused
    tick += not is_paused
    memory[:] = (2 * tick + is_paused).to_bytes({STATE_BYTES}, "little")
    time.sleep({TICK_S})
"""
