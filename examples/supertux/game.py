"""Starts SuperTux, and reads the state that the game reports at each tick of 15 ms.

The level's script (`state.nut`) writes the state to the game's log, and a thread reads it into
`state`. `write_episode` writes `episode.nut`, which the script reads at each tick. If the episode's
number is new, the script restarts the level. On Linux the log is the game's standard error. On
Windows the log is a file (`log.py`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from examples.supertux.log import LogFile, windows_log
from sc2pool.deadline import Deadline
from sc2pool.errors import FaultKind, GameFault
from sc2pool.platform import WINDOWS
from sc2pool.realtime.screen.program import find_program
from sc2pool.realtime.screen.window import PRESS_S, GameWindow

SIZE: Final = (320, 240)
"""Width and height of the game's picture in pixels."""
LEVEL: Final = Path(__file__).with_name("level.stl")
TICK_S: Final = 0.015
"""Duration of a tick in seconds."""
_STARTS_WITHIN_S: Final = 30.0
_ATTEMPTS: Final = 3
_INTRO_FADES_WITHIN_S: Final = 2.0
_TICKS_THAT_PROVE_PLAY: Final = 4
_POLL_S: Final = 0.002
_SETTINGS: Final = "(supertux-config (pause_on_focusloss #f))\n"
"""The game's settings. By default a game without the focus pauses, so steps would wait for ever."""
_MARK: Final = b"[SCRIPTING] run "
_HOW_TO_INSTALL: Final = (
    "install it from https://www.supertux.org"
    if WINDOWS
    else "on Debian and Ubuntu: apt-get install --no-install-recommends supertux xvfb "
    "libgl1-mesa-dri"
)


def find_game() -> str:
    """The path of the game, from the PATH or a default folder for games.

    Raises:
        ConfigError: The game is not installed.
    """
    programs = os.environ.get("PROGRAMFILES", "C:\\Program Files")
    folder = str(Path(programs, "SuperTux", "bin")) if WINDOWS else "/usr/games"
    return find_program("supertux2", _HOW_TO_INSTALL, folder=folder)


@dataclass(frozen=True)
class State:
    """The game's state at one tick.

    Attributes:
        episode: The episode's number, see `SuperTux.write_episode`.
        tick: The number of ticks since the game's process started, over all episodes.
        died: True if Tux has died in this episode. After a death, the values below do not change.
        x: Tux's distance from the left, in pixels.
        y: Tux's distance from the top, in pixels.
        speed_x: Tux's horizontal speed, in pixels a second.
        speed_y: Tux's downward speed, in pixels a second.
    """

    episode: int
    tick: int
    died: bool
    x: float
    y: float
    speed_x: float
    speed_y: float


_NO_STATE: Final = State(0, -1, False, 0.0, 0.0, 0.0, 0.0)
"""The state before the first line of the log."""


def parse_state(line: bytes) -> State | None:
    """Parse a line of the game's log; None if the line has no state."""
    if not line.startswith(_MARK):
        return None
    episode, tick, died, x, y, speed_x, speed_y = line[len(_MARK) :].split()
    return State(
        int(episode), int(tick), died == b"1", float(x), float(y), float(speed_x), float(speed_y)
    )


class SuperTux:
    """A running game that plays the level.

    Args:
        folder: The folder for the game's settings and `episode.nut`.

    Raises:
        ConfigError: The game, Xvfb or a Python package is not installed.
        GameFault: The game does not start.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write_episode(0)
        (folder / "config").write_text(_SETTINGS)
        game = find_game()
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._start(game)
                return
            except GameFault as error:
                # Try again if one key press has counted as two; see `_leave_intro`.
                if error.kind is not FaultKind.GAME_EXITED or attempt == _ATTEMPTS:
                    raise

    def _start(self, game: str) -> None:
        self.state = _NO_STATE
        options = ["--disable-sound", "--disable-music", "-w", "-g", "{}x{}".format(*SIZE)]
        # The folder is an option, because its environment variable fails with umlauts on Windows.
        options += ["--renderer", "sdl", "--userdir", str(self.folder), str(LEVEL)]
        with ExitStack() as owned:
            if WINDOWS:
                owned.callback(LogFile(windows_log(), self._note).close)
            self.window = GameWindow.start(
                [game, *options],
                size=SIZE,
                folder=self.folder,
                environment={"SDL_AUDIODRIVER": "dummy", "ALSOFT_DRIVERS": "null"},
                on_line=self._note,
            )
            owned.callback(self.window.close)
            self._leave_intro()
            self.close = owned.pop_all().close  # ends the game; may be called again

    def _note(self, line: bytes) -> bool:
        state = parse_state(line)
        if state is not None:
            self.state = state
        return state is not None

    def _leave_intro(self) -> None:
        """Press a key to leave the intro, and wait until the level runs.

        On a busy machine a frame may span two ticks. If a key press falls into a frame
        of two ticks, it counts twice, so the game leaves the level and ends.
        """
        deadline = Deadline.after(_STARTS_WITHIN_S)
        self._await(lambda: self.state.tick >= 0, deadline)
        first = self.state.tick
        while self.state.tick == first:
            for keys, seconds in ((("Return",), PRESS_S), ((), _INTRO_FADES_WITHIN_S)):
                self.window.hold(keys)
                fades = Deadline.after(seconds)
                self._await(lambda: self.state.tick != first or fades.expired(), deadline)  # noqa: B023
        self._await(lambda: self.state.tick >= first + _TICKS_THAT_PROVE_PLAY, deadline)

    def _await(self, reached: Callable[[], bool], deadline: Deadline) -> None:
        while not reached():
            if (how := self.window.end()) is not None:
                raise GameFault(FaultKind.GAME_EXITED, f"SuperTux: it ended: {how}{self.log()}")
            if deadline.expired():
                raise GameFault(FaultKind.LAUNCH_FAILED, f"SuperTux does not play{self.log()}")
            time.sleep(_POLL_S)

    def log(self) -> str:
        """The last lines of the game's log, for an error's text."""
        return f"; its log ends with:\n{self.window.log_tail()}"

    def write_episode(self, number: int) -> None:
        """Ask the game for the episode with this number. A new number restarts the level."""
        # One call writes the whole text, of constant length: the game may read it at any moment.
        # The file is not replaced, because Windows does not replace open files.
        text = f"state.wanted <- {number:9d};\n".encode()
        file = os.open(self.folder / "episode.nut", os.O_WRONLY | os.O_CREAT)
        try:
            os.write(file, text)
        finally:
            os.close(file)
