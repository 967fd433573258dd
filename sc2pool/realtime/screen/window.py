"""`GameWindow`: the picture and the keys of a live game.

`start` gives the game a display of its own (Xvfb) on Linux, and the desktop on Windows.
`attach` finds the window of a game that already runs on the user's desktop.

Keys go to the window in front. So a game on a desktop needs the whole desktop, and only one game at
a time can be played on a desktop. Keys are pressed only if the game's window is in front.

Methods raise `GameFault` if the window is closed, if the game has ended, or if the display is gone.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol, TypeVar

import numpy as np

from sc2pool.deadline import Deadline
from sc2pool.errors import ConfigError, FaultKind, GameFault, SC2PoolError
from sc2pool.optional import require
from sc2pool.platform import WINDOWS
from sc2pool.processes.filelock import try_lock, unlock_and_remove
from sc2pool.realtime.screen import desktop
from sc2pool.realtime.screen.capture import (
    Area,
    Capture,
    Frame,
    OpenWindow,
    described,
    fitted,
    listed,
    shrunk,
    the_one,
)
from sc2pool.realtime.screen.program import Program, VirtualDisplay, find_program
from sc2pool.realtime.screen.x11 import X11Screen

PRESS_S: Final = 0.1
"""Duration of a key press in seconds. A game on a busy machine may miss a shorter press."""
_OPENS_WITHIN_S: Final = 20.0
_COMES_TO_FRONT_WITHIN_S: Final = 1.0
_FREE_WITHIN_S: Final = 5.0
"""Time limit until the desktop is free, if the process of a replaced env still uses it."""
_POLL_S: Final = 0.02
_T = TypeVar("_T")


class Screen(Protocol):
    """The windows and the keyboard of a display: an `X11Screen`, or Windows' `Desktop`."""

    @property
    def display(self) -> str | None:
        """The value of the environment variable `DISPLAY`; None without X11."""

    def windows(self) -> list[OpenWindow]: ...
    def area(self, handle: int) -> Area: ...
    def is_in_front(self, handle: int) -> bool: ...
    def bring_to_front(self, handle: int) -> None: ...
    def check_key(self, key: str) -> None: ...
    def send(self, key: str, *, press: bool) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...


class GameWindow:
    """A live game's window. Make a `GameWindow` with `start` or `attach`.

    Keys have the names of X11 on every system, for example `"Right"`, `"space"`, `"Return"`, `"a"`.

    Attributes:
        pid: The pid of the game's process; None if the game's window does not report the pid.
    """

    def __init__(
        self,
        screen: Screen,
        owned: ExitStack,
        size: tuple[int, int] | None,
        program: Program | None = None,
        display: VirtualDisplay | None = None,
    ) -> None:
        self._screen = screen
        self._size = size
        self._program = program
        self._virtual = display
        self._window: OpenWindow | None = None
        """The game's window; None if the game has a screen of its own."""
        self.pid = None if program is None else program.pid
        self._held: frozenset[str] = frozenset()
        self._capture = Capture(screen.display)
        owned.callback(self._capture.close)
        self._owned = owned

    @classmethod
    def start(
        cls,
        command: Sequence[str],
        *,
        size: tuple[int, int] = (640, 480),
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        on_line: Callable[[bytes], bool] | None = None,
        how_to_install: str = "install it, or give its path",
    ) -> GameWindow:
        """Start a game and wait until its window is open.

        The game ends when this object is closed, or when the thread that has called `start` ends.

        Args:
            command: The game's name or path, and its arguments.
            size: Width and height of the game's picture in pixels. On Linux the display has this
                size. On Windows pictures are scaled to this size.
            folder: The folder for temporary files. None makes a new folder, which `close` deletes.
            environment: Additional environment variables for the game.
            on_line: A function that another thread calls with each line of the game's output. If it
                returns True, the line is not kept for `log_tail`.
            how_to_install: Advice for the error if the game is not installed.

        Raises:
            ConfigError: The game, Xvfb or a Python package is not installed, or another game is
                played on Windows' desktop.
            GameFault: A program does not start.
        """
        _check_size(size)
        _check_packages()
        path = find_program(command[0], how_to_install)
        with ExitStack() as owned:
            if folder is None:
                prefix = f"{Path(path).stem}-"
                folder = Path(owned.enter_context(tempfile.TemporaryDirectory(prefix=prefix)))
            variables, display = dict(environment or {}), None
            if WINDOWS:
                _take_desktop(None, owned)
            else:
                display = VirtualDisplay(folder, size)
                owned.callback(display.close)
                variables["DISPLAY"] = display.name
            screen = _screen(display.name if display else None, owned)
            program = Program([path, *command[1:]], folder, variables, on_line)
            owned.callback(program.close)
            window = cls(screen, owned, size, program, display)
            window._await_window()
            window._owned = owned.pop_all()
        return window

    @classmethod
    def attach(
        cls,
        *,
        title: str | None = None,
        pid: int | None = None,
        size: tuple[int, int] | None = None,
        display: str | None = None,
    ) -> GameWindow:
        """Play in a window that is already open; `close` does not end the game.

        If the game was already running, a pool's `pause` raises `PauseError`; use a `PauseGate`.

        Args:
            title: A part of the window's title; the case of letters does not matter.
            pid: The pid of the window's process.
            size: Width and height to which pictures are scaled; None for the window's own size.
            display: The X11 display's name, by default the value of `DISPLAY`; not used on Windows.

        Raises:
            ConfigError: There is no display, or another env plays on this desktop. No window or
                several windows have this title and pid. A Python package is not installed.
        """
        if title is None and pid is None:
            raise ConfigError("give the title of the game's window or the pid of its process")
        if size is not None:
            _check_size(size)
        _check_packages()
        if not WINDOWS:
            display = display or os.environ.get("DISPLAY")
            if not display:
                raise ConfigError(
                    "there is no display: the environment variable DISPLAY is not set; "
                    "GameWindow.start gives a game a display of its own"
                )
        with ExitStack() as owned:
            _take_desktop(display, owned)
            screen = _screen(display, owned)
            windows = screen.windows()
            found = the_one(windows, title, pid)
            if found is None:
                raise ConfigError(
                    f"no window seems to {described(title, pid)}; open windows: {listed(windows)}"
                )
            window = cls(screen, owned, size)
            window._window, window.pid = found, found.pid
            owned.callback(window._release_keys)
            window._owned = owned.pop_all()
        return window

    def _await_window(self) -> None:
        program = self._program
        assert program is not None

        def opened() -> OpenWindow | bool | None:
            if program.end() is not None:
                return True
            windows = self._screen.windows()
            return next((one for one in windows if not WINDOWS or one.pid == program.pid), None)

        none = self._fault(FaultKind.LAUNCH_FAILED, f"it opened no window in {_OPENS_WITHIN_S} s")
        with self._reached():
            found = _poll(opened, _OPENS_WITHIN_S, none)
        if not isinstance(found, OpenWindow):
            raise self._fault(FaultKind.GAME_EXITED, f"it ended: {program.end()}")
        if WINDOWS:
            self._window = found
            self._owned.callback(self._release_keys)

    # ---- keys ------------------------------------------------------------------------------------

    def hold(self, keys: Sequence[str]) -> None:
        """Hold down these keys and release all others. A key that is down is not pressed again.

        Raises:
            ConfigError: The keyboard does not have one of the keys.
            GameFault: The game's window cannot be brought to the front, or is gone.
        """
        wanted = frozenset([keys] if isinstance(keys, str) else keys)
        for key in wanted - self._held:
            self._screen.check_key(key)
        with self._reached():
            # A window that was behind another window does not know which keys are down.
            in_front = self._is_in_front()
            staying = self._held & wanted if in_front else frozenset()
            for key in self._held - staying:
                self._screen.send(key, press=False)
            self._held = staying
            if wanted and not in_front:
                self._come_to_front()
            for key in wanted - staying:
                self._screen.send(key, press=True)
            self._held = wanted
            self._screen.flush()

    def press(self, *keys: str) -> None:
        """Press these keys together for 0.1 s, and release all keys."""
        self.hold(keys)
        time.sleep(PRESS_S)
        self.hold(())

    def _is_in_front(self) -> bool:
        return self._window is None or self._screen.is_in_front(self._window.handle)

    def _come_to_front(self) -> None:
        assert self._window is not None
        handle = self._window.handle
        refused = self._fault(
            FaultKind.DEADLINE,
            "its window cannot be brought to the front, where it would get the keys; leave the "
            "desktop to the game",
        )

        def come() -> bool | None:
            self._screen.bring_to_front(handle)
            return self._screen.is_in_front(handle) or None

        _poll(come, _COMES_TO_FRONT_WITHIN_S, refused)

    def _release_keys(self) -> None:
        with suppress(Exception):  # the display may have ended
            for key in self._held:
                self._screen.send(key, press=False)
            self._screen.flush()
        self._held = frozenset()

    # ---- pictures --------------------------------------------------------------------------------

    def colours(self) -> Frame:
        """The picture in colours, uint8, height × width × 3 (red, green, blue).

        Raises:
            GameFault: The window is closed or minimised, or the display has ended.
        """
        return np.ascontiguousarray(self._bgr()[..., ::-1])

    def grey(self, rows: int, columns: int) -> Frame:
        """The picture in grey, uint8, reduced to 1 × rows × columns, the shape for SB3's CNN.

        Raises:
            ConfigError: The picture has fewer rows or columns than requested.
            GameFault: The window is closed or minimised, or the display has ended.
        """
        return shrunk(self._bgr(), rows, columns)

    def _bgr(self) -> Frame:
        with self._reached():
            if self._window is not None:
                area = self._screen.area(self._window.handle)
            else:
                assert self._size is not None, "a display of its own has a size"
                area = (0, 0, *self._size)
            frame = self._capture.bgr(area)
        return frame if self._size is None else fitted(frame, self._size)

    # ---- ends ------------------------------------------------------------------------------------

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Turn an exception in the block into a `GameFault` if the game or the display is gone."""
        try:
            yield
        except SC2PoolError:
            raise
        except Exception as error:  # each library has its own error for a lost connection
            how = self._virtual.end() if self._virtual else None
            if how is None:
                raise self._fault(FaultKind.CONNECTION_LOST, f"the screen: {error!r}") from error
            raise self._fault(FaultKind.CONNECTION_LOST, f"Xvfb: {how}") from error

    def _fault(self, kind: FaultKind, what: str) -> GameFault:
        name = self._program.name if self._program else "the game"
        tail = self.log_tail()
        more = f"; its log ends with:\n{tail}" if tail else ""
        return GameFault(kind, f"{name}: {what}{more}")

    def end(self) -> str | None:
        """How the game has ended, for example `exit code 3`.

        None if the game runs, or if this object has not started it.
        """
        return self._program.end() if self._program else None

    def log_tail(self) -> str:
        """The last lines of the game's output; empty if this object has not started the game."""
        return self._program.log_tail() if self._program else ""

    def close(self) -> None:
        """Release the keys. End the game and its display if this object has started them.

        May be called again.
        """
        self._owned.close()


def _screen(display: str | None, owned: ExitStack) -> Screen:
    screen: Screen
    if WINDOWS:
        screen = desktop.Desktop()
    else:
        assert display is not None, "X11 needs the name of a display"
        screen = X11Screen(display)
    owned.callback(screen.close)
    return screen


def _take_desktop(display: str | None, owned: ExitStack) -> None:
    """Lock the desktop for one env; raise `ConfigError` if another env holds the lock."""
    name = "".join(letter for letter in display or "" if letter.isalnum())
    path = Path(tempfile.gettempdir()) / f"sc2pool-desktop{name}.lock"
    taken = ConfigError("another env plays on this desktop: one game can be played there at a time")
    lock = _poll(lambda: try_lock(path), _FREE_WITHIN_S, taken)
    owned.callback(unlock_and_remove, lock, path)


def _check_packages() -> None:
    require("a game on a screen", "mss")
    if not WINDOWS:
        require("a game on an X11 display", "Xlib")


def _check_size(size: tuple[int, int]) -> None:
    whole = isinstance(size, tuple) and len(size) == 2 and all(type(one) is int for one in size)
    if not (whole and min(size) > 0):
        raise ConfigError(f"size={size!r}, expected width and height in pixels, as (640, 480)")


def _poll(ask: Callable[[], _T | None], within_s: float, error: SC2PoolError) -> _T:
    """Call `ask` until its result is not None; raise `error` after `within_s`."""
    deadline = Deadline.after(within_s)
    while (answer := ask()) is None:
        if deadline.expired():
            raise error
        time.sleep(_POLL_S)
    return answer
