"""The game's process, and the state that it reports at each tick of 15 ms.

    level.stl ─► state.nut ─► the game's log ─► a thread here ─► `state`
    `begin_episode` ─► episode.nut, which state.nut reads at each tick ─► the level restarts

Rules: a thread always reads the log, because a full pipe would block the game. Every failure is a
`GameFault`. The game is killed, not asked to end. It ends with the thread that started it; on
Windows, with the process.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from examples.supertux.log import LogFile, windows_log
from examples.supertux.needs import GAME, program
from sc2pool.deadline import Deadline
from sc2pool.errors import FaultKind, GameFault
from sc2pool.game.program.process import game_environment
from sc2pool.platform import WINDOWS
from sc2pool.processes.spawn import describe_exit
from sc2pool.processes.with_parent import die_with_parent, end_with_this_process
from sc2pool.realtime.screen.keyboard import MIN_PRESS_S, Keys
from sc2pool.realtime.screen.virtual_display import HEIGHT, WIDTH

LEVEL: Final = Path(__file__).with_name("level.stl")
TICK_S: Final = 0.015
"""Duration of a tick."""
_STARTS_WITHIN_S: Final = 30.0
_ATTEMPTS: Final = 3
_INTRO_FADES_WITHIN_S: Final = 2.0
_TICKS_THAT_PROVE_PLAY: Final = 4
_REAP_S: Final = 3.0
"""How long a failed game may take to end; together with a step's limit below the pool's 10 s."""
_LOG_LINES: Final = 20
_SETTINGS: Final = "(supertux-config (pause_on_focusloss #f))\n"
"""Without this, a game on a desktop would pause, and a step would wait for ever."""
_MARK: Final = b"[SCRIPTING] run "


@dataclass(frozen=True)
class State:
    """The game's state at one tick.

    Attributes:
        episode: the episode's number, counted by `begin_episode`.
        tick: ticks since the game's process started, over all episodes.
        died: whether Tux has died in this episode; if so, the fields below are those of his death.
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
    """Parse a line of the game's log; None if it is not a state."""
    if not line.startswith(_MARK):
        return None
    episode, tick, died, x, y, speed_x, speed_y = line[len(_MARK) :].split()
    return State(
        int(episode), int(tick), died == b"1", float(x), float(y), float(speed_x), float(speed_y)
    )


class SuperTux:
    """A running game; make it with `started`.

    Args:
        display: the name of the game's display; None for the user's desktop.
        folder: the folder for its settings and `episode.nut`.
    """

    def __init__(self, display: str | None, folder: Path) -> None:
        self._folder = folder
        self._episode = 0
        self._state: State | None = None
        self._ended = False
        self._changed = threading.Condition()
        self._log: deque[bytes] = deque(maxlen=_LOG_LINES)
        self._write_episode()
        (folder / "config").write_text(_SETTINGS)
        command = [
            program(GAME),
            "--disable-sound",
            "--disable-music",
            "-w",
            "-g",
            f"{WIDTH}x{HEIGHT}",
            "--renderer",
            "sdl",
            "--userdir",  # its environment variable does not support umlauts on Windows
            str(folder),
            str(LEVEL),
        ]
        own = {
            "SDL_AUDIODRIVER": "dummy",
            "ALSOFT_DRIVERS": "null",
        }
        if display is not None:
            own["DISPLAY"] = display
        self._log_file = LogFile(windows_log()) if WINDOWS else None
        self._process = subprocess.Popen(
            command,
            env=game_environment(os.environ, folder) | own,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL if WINDOWS else subprocess.PIPE,
            preexec_fn=die_with_parent(),  # noqa: PLW1509  # it takes no lock
        )
        try:
            self._let_go = end_with_this_process(self._process)
        except OSError as error:
            self._process.kill()
            raise GameFault(FaultKind.LAUNCH_FAILED, f"SuperTux: {error}") from error
        self.pid = self._process.pid
        self._reader = threading.Thread(target=self._read, name="supertux-log", daemon=True)
        self._reader.start()

    @property
    def state(self) -> State:
        """The newest state, which exists after `started`."""
        assert self._state is not None, "no state reported yet"
        return self._state

    @classmethod
    def started(cls, display: str | None, folder: Path, keyboard: Keys) -> SuperTux:
        """Start a game and wait until its level runs.

        Raises:
            ConfigError: the game is not installed.
            GameFault: the game does not start.
        """
        attempts = 0
        while True:
            attempts += 1
            game = cls(display, folder)
            try:
                game._leave_intro(keyboard)
            except BaseException as error:
                # Try again if one key press has counted as two; see `_leave_intro`.
                again = isinstance(error, GameFault) and game._ended and attempts < _ATTEMPTS
                game.close()
                if not again:
                    raise
            else:
                return game

    def _leave_intro(self, keyboard: Keys) -> None:
        """Press a key to leave the intro, and wait until the level runs.

        On a busy machine a frame may span two ticks, and the press counts in both. The second press
        then leaves the level, and the game ends.
        """
        deadline = Deadline.after(_STARTS_WITHIN_S)
        first = self._await(lambda _: True, deadline, FaultKind.LAUNCH_FAILED).tick
        keyboard.aim_at(self.pid)
        while self.state.tick == first and not self._ended and not deadline.expired():
            for keys, seconds in ((("Return",), MIN_PRESS_S), ((), _INTRO_FADES_WITHIN_S)):
                keyboard.hold(keys)
                with self._changed:
                    self._changed.wait_for(lambda: self._moved(first), seconds)
        runs = first + _TICKS_THAT_PROVE_PLAY
        self._await(lambda state: state.tick >= runs, deadline, FaultKind.LAUNCH_FAILED)

    def begin_episode(self, within_s: float) -> State:
        """Restart the level and return the first state of the new episode.

        Raises:
            GameFault: the game has ended, or the episode does not begin within this time.
        """
        self._episode += 1
        self._write_episode()
        return self.wait_for(lambda state: state.episode == self._episode, within_s)

    def wait_for(self, reached: Callable[[State], bool], within_s: float) -> State:
        """Wait for a state with `reached(state)` and return it.

        Raises:
            GameFault: the game has ended, or does not reach such a state within this time.
        """
        return self._await(reached, Deadline.after(within_s), FaultKind.DEADLINE)

    def _await(
        self, reached: Callable[[State], bool], deadline: Deadline, kind: FaultKind
    ) -> State:
        with self._changed:
            while True:
                state = self._state
                if state is not None and reached(state):
                    return state
                if self._ended or deadline.expired():
                    raise self._fault(kind, "it does not advance")
                self._changed.wait(deadline.remaining_s())

    def _moved(self, tick: int) -> bool:
        return self._ended or self.state.tick != tick

    def _fault(self, kind: FaultKind, what: str) -> GameFault:
        """The fault to raise, with the detail that the game has ended, or else `what`."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_REAP_S)
        code = self._process.poll()
        if self._ended or code is not None:
            what = f"it ended: {'exit code unknown' if code is None else describe_exit(code)}"
            if kind is FaultKind.DEADLINE:
                kind = FaultKind.GAME_EXITED
        else:
            what = f"{what}; its newest state is {self._state}"
        log = b"\n".join(self._log).decode(errors="replace")
        return GameFault(kind, f"SuperTux: {what}; its log ends with:\n{log}")

    def _read(self) -> None:
        for line in self._log_lines():
            state = parse_state(line)
            if state is None:
                self._log.append(line.rstrip())
                continue
            with self._changed:
                self._state = state
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _log_lines(self) -> Iterator[bytes]:
        if self._log_file is not None:
            return self._log_file.lines(lambda: self._process.poll() is not None)
        assert self._process.stderr is not None
        return iter(self._process.stderr)

    def _write_episode(self) -> None:
        # One write of constant length, because the game may read the file at any moment, and
        # Windows does not replace open files.
        text = f"state.wanted <- {self._episode:9d};\n".encode()
        file = os.open(self._folder / "episode.nut", os.O_WRONLY | os.O_CREAT)
        try:
            os.write(file, text)
        finally:
            os.close(file)

    def close(self) -> None:
        """End the game; may be called again."""
        self._process.kill()
        self._process.wait()
        self._let_go()
        self._reader.join()
        if self._process.stderr is not None:
            self._process.stderr.close()
        if self._log_file is not None:
            self._log_file.close()
