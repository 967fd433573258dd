"""The game's process, and what it tells of the run: a state each tick of 15 ms.

    level.stl ─► state.nut ─► the game's log ─► a thread here ─► `state`
    `begin_run` ─► episode.nut, which state.nut looks at each tick ─► the level begins anew

Rules: the log is read all the time, because a game whose pipe is full waits, and that would be a
pause that nobody asked for; what goes wrong is a `GameFault`; nothing is asked of a game that is
to end. It ends with the thread that started it.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from examples.supertux.display import HEIGHT, WIDTH
from examples.supertux.keys import LEAST_HELD_S, Keyboard
from examples.supertux.needs import GAME, program
from sc2pool.deadline import Deadline
from sc2pool.errors import FaultKind, GameFault
from sc2pool.game.process import describe_exit, game_environment
from sc2pool.processes.with_parent import die_with_parent

LEVEL: Final = Path(__file__).with_name("level.stl")
TICK_S: Final = 0.015
"""How long a tick of the game's lasts."""
_STARTS_WITHIN_S: Final = 30.0
_ATTEMPTS: Final = 3
_INTRO_FADES_WITHIN_S: Final = 2.0
_TICKS_THAT_PROVE_IT: Final = 4
_REAP_S: Final = 5.0
_LOG_LINES: Final = 20
_MARK: Final = b"[SCRIPTING] run "


@dataclass(frozen=True)
class State:
    """How the run stood at one tick.

    Attributes:
        episode: as given to `begin_run`.
        tick: of the game's process, over all episodes.
        died: Tux has died in this episode; all that follows is how he stood then.
        x: pixels from the left.
        y: pixels from the top.
        speed_x: pixels a second.
        speed_y: pixels a second, downwards.
    """

    episode: int
    tick: int
    died: bool
    x: float
    y: float
    speed_x: float
    speed_y: float


def parse_state(line: bytes) -> State | None:
    """The state that a line of the game's log tells; None for any other line."""
    if not line.startswith(_MARK):
        return None
    episode, tick, died, x, y, speed_x, speed_y = line[len(_MARK) :].split()
    return State(
        int(episode), int(tick), died == b"1", float(x), float(y), float(speed_x), float(speed_y)
    )


class SuperTux:
    """A running game, made with `started`.

    Args:
        display: where it is to be seen.
        folder: for its settings and the file that it is told episodes by.
    """

    def __init__(self, display: str, folder: Path) -> None:
        self._folder = folder
        self._episode = 0
        self._state: State | None = None
        self._ended = False
        self._news = threading.Condition()
        self._log: deque[bytes] = deque(maxlen=_LOG_LINES)
        self._write_episode()
        command = [
            program(GAME),
            *("--disable-sound", "--disable-music"),
            *("-w", "-g", f"{WIDTH}x{HEIGHT}", "--renderer", "sdl"),
            str(LEVEL),
        ]
        own = {
            "DISPLAY": display,
            "SDL_AUDIODRIVER": "dummy",
            "ALSOFT_DRIVERS": "null",
            "SUPERTUX2_USER_DIR": str(folder),
        }
        self._process = subprocess.Popen(
            command,
            env=game_environment(os.environ, folder) | own,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            preexec_fn=die_with_parent(),  # noqa: PLW1509  # it takes no lock
        )
        self.pid = self._process.pid
        self._reader = threading.Thread(target=self._read, name="supertux-log", daemon=True)
        self._reader.start()

    @property
    def state(self) -> State:
        """The newest one there is; `started` has seen to it that there is one."""
        assert self._state is not None, "it has told none yet"
        return self._state

    @classmethod
    def started(cls, display: str, folder: Path, keyboard: Keyboard) -> SuperTux:
        """A game whose level runs.

        Raises:
            ConfigError: the game is not installed.
            GameFault: it does not start.
        """
        attempts = 0
        while True:
            attempts += 1
            game = cls(display, folder)
            try:
                game._leave_intro(keyboard)
            except BaseException as error:
                # One press was taken for two, see below.
                again = isinstance(error, GameFault) and game._ended and attempts < _ATTEMPTS
                game.close()
                if not again:
                    raise
            else:
                return game

    def _leave_intro(self, keyboard: Keyboard) -> None:
        """Wait until the level runs: the game shows its name first, until a key is pressed.

        On a busy machine a frame may take two ticks, and the press counts in both: the second time
        it leaves the level, and with it the game.
        """
        deadline = Deadline.after(_STARTS_WITHIN_S)
        first = self._await(lambda _: True, deadline, FaultKind.LAUNCH_FAILED).tick
        while self.state.tick == first and not self._ended and not deadline.expired():
            for keys, seconds in ((("Return",), LEAST_HELD_S), ((), _INTRO_FADES_WITHIN_S)):
                keyboard.hold(keys)
                with self._news:
                    self._news.wait_for(lambda: self._moved(first), seconds)
        runs = first + _TICKS_THAT_PROVE_IT
        self._await(lambda state: state.tick >= runs, deadline, FaultKind.LAUNCH_FAILED)

    def begin_run(self, within_s: float) -> State:
        """Begin the level anew; the first state of the new episode.

        Raises:
            GameFault: it has ended, or does not begin within this time.
        """
        self._episode += 1
        self._write_episode()
        return self.wait_for(lambda state: state.episode == self._episode, within_s)

    def wait_for(self, reached: Callable[[State], bool], within_s: float) -> State:
        """The first state that this is true of.

        Raises:
            GameFault: the game has ended, or there was none within this time.
        """
        return self._await(reached, Deadline.after(within_s), FaultKind.DEADLINE)

    def _await(
        self, reached: Callable[[State], bool], deadline: Deadline, kind: FaultKind
    ) -> State:
        with self._news:
            while True:
                state = self._state
                if state is not None and reached(state):
                    return state
                if self._ended or deadline.expired():
                    raise self._fault(kind, "it does not get on")
                self._news.wait(deadline.remaining_s())

    def _moved(self, tick: int) -> bool:
        return self._ended or self.state.tick != tick

    def _fault(self, kind: FaultKind, what: str) -> GameFault:
        """The fault that tells what is wrong: that it has ended, or else `what`."""
        if self._ended:
            with suppress(subprocess.TimeoutExpired):  # its log ends a little earlier
                self._process.wait(_REAP_S)
            code = self._process.poll()
            what = f"it ended: {'exit code unknown' if code is None else describe_exit(code)}"
            if kind is FaultKind.DEADLINE:
                kind = FaultKind.GAME_EXITED
        else:
            what = f"{what}; its newest state is {self._state}"
        log = b"\n".join(self._log).decode(errors="replace")
        return GameFault(kind, f"SuperTux: {what}; its log ends with:\n{log}")

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            state = parse_state(line)
            if state is None:
                self._log.append(line.rstrip())
                continue
            with self._news:
                self._state = state
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    def _write_episode(self) -> None:
        new = self._folder / "episode.new"
        new.write_text(f"state.wanted <- {self._episode};\n")
        new.replace(self._folder / "episode.nut")  # the game may read it at any moment

    def close(self) -> None:
        """End the game; may be called again."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stderr is not None
        self._process.stderr.close()
