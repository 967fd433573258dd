"""Windows' desktop in place of a virtual display: the game's window and its keys.

Windows sends keys only to the window in front. So only one game can be played at a time, and it
needs the whole desktop. Rules: a key is pressed only if the game's window is in front. A key is
sent as its place on the keyboard (scan code), because games read scan codes.
"""

from __future__ import annotations

import ctypes
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from sc2pool.deadline import Deadline
from sc2pool.errors import ConfigError, FaultKind, GameFault, SC2PoolError
from sc2pool.platform import WINDOWS
from sc2pool.processes.filelock import try_lock, unlock_and_remove

if WINDOWS:
    from ctypes import wintypes

    _OPENS_WITHIN_S: Final = 20.0
    _COMES_TO_FRONT_WITHIN_S: Final = 1.0
    _FREE_WITHIN_S: Final = 5.0
    """Time for the previous env's process to end, if this env replaces it."""
    _POLL_INTERVAL_S: Final = 0.02
    _T = TypeVar("_T")

    _KEYBOARD: Final = 1
    """`INPUT_KEYBOARD`."""
    _EXTENDED, _RELEASE, _SCAN_CODE = 1, 2, 8
    """Flags of `KEYBDINPUT`."""
    _SCAN_CODES: Final = {"Right": (0x4D, _EXTENDED), "space": (0x39, 0), "Return": (0x1C, 0)}
    """Scan codes and flags by X11's names of the keys."""

    class _Key(ctypes.Structure):
        _fields_ = (
            ("virtual_key", wintypes.WORD),
            ("scan_code", wintypes.WORD),
            ("flags", wintypes.DWORD),
            ("time", wintypes.DWORD),
            ("extra", ctypes.c_size_t),
        )

    class _Input(ctypes.Structure):
        _fields_ = (
            ("kind", wintypes.DWORD),
            ("key", _Key),
            ("rest", ctypes.c_uint64),  # Windows' structure has this size, for mouse input
        )

    _user32 = ctypes.WinDLL("user32", use_last_error=True)
    _EachWindow = ctypes.WINFUNCTYPE(wintypes.BOOL, wintypes.HWND, wintypes.LPARAM)
    _user32.EnumWindows.argtypes = (_EachWindow, wintypes.LPARAM)
    _user32.GetWindowThreadProcessId.argtypes = (wintypes.HWND, ctypes.c_void_p)
    _user32.IsWindowVisible.argtypes = (wintypes.HWND,)
    _user32.SetForegroundWindow.argtypes = (wintypes.HWND,)
    _user32.GetForegroundWindow.restype = wintypes.HWND
    _user32.ClientToScreen.argtypes = (wintypes.HWND, ctypes.c_void_p)
    _user32.GetClientRect.argtypes = (wintypes.HWND, ctypes.c_void_p)
    _user32.SendInput.argtypes = (wintypes.UINT, ctypes.c_void_p, ctypes.c_int)

    class Desktop:
        """The area of one game's window on the desktop, and the keyboard.

        Raises:
            ConfigError: another env's game uses the desktop.
        """

        name: str | None = None

        def __init__(self) -> None:
            self._lock_path = Path(tempfile.gettempdir()) / "sc2pool-supertux.lock"
            self._lock: int | None = _lock_alone(self._lock_path)
            self._window = 0
            self._held: frozenset[str] = frozenset()

        def aim_at(self, pid: int) -> None:
            """Wait for the window of this process, and send keys to it from now on.

            Raises:
                GameFault: the process opens no window in time.
            """
            none = GameFault(FaultKind.LAUNCH_FAILED, f"process {pid} opens no window")
            self._window = _poll(lambda: _visible_window(pid), _OPENS_WITHIN_S, none)

        def hold(self, keys: Collection[str]) -> None:
            """Hold down only these keys; a key that is already down is not pressed again.

            Raises:
                GameFault: the game's window cannot be brought to the front.
            """
            wanted = frozenset(keys)
            # When a window loses the front, it forgets the keys that were down.
            in_front = _user32.GetForegroundWindow() == self._window
            staying = self._held & wanted if in_front else frozenset()
            for key in self._held - staying:
                _send(key, _RELEASE)
            self._held = staying
            if wanted and not in_front:
                self._come_to_front()
            for key in wanted - staying:
                _send(key, 0)
            self._held = wanted

        def _come_to_front(self) -> None:
            refused = GameFault(
                FaultKind.DEADLINE,
                "SuperTux: its window cannot be brought to the front, where it would get the keys; "
                "leave the desktop to it",
            )

            def come() -> bool | None:
                _user32.SetForegroundWindow(self._window)
                return _user32.GetForegroundWindow() == self._window or None

            _poll(come, _COMES_TO_FRONT_WITHIN_S, refused)

        def area(self) -> tuple[int, int, int, int]:
            """The game's picture on the screen: left, top, width and height in pixels.

            Raises:
                GameFault: the window is closed or minimised.
            """
            corner, size = wintypes.POINT(), wintypes.RECT()
            _user32.ClientToScreen(self._window, ctypes.byref(corner))
            _user32.GetClientRect(self._window, ctypes.byref(size))
            if not (size.right and size.bottom):
                raise GameFault(FaultKind.CONNECTION_LOST, "SuperTux: its window is not open")
            return corner.x, corner.y, size.right, size.bottom

        @contextmanager
        def in_use(self) -> Iterator[None]:
            """See `VirtualDisplay.in_use`; nothing to do here, because the desktop does not end."""
            yield

        def close(self) -> None:
            """Release all keys and the desktop's lock; may be called again."""
            self.hold(())
            lock, self._lock = self._lock, None
            if lock is not None:
                unlock_and_remove(lock, self._lock_path)

    def _lock_alone(path: Path) -> int:
        """Take the lock that allows only one game on the desktop."""
        taken = "another SuperTux env has the desktop: on Windows one can be played at a time"
        return _poll(lambda: try_lock(path), _FREE_WITHIN_S, ConfigError(taken))

    def _poll(ask: Callable[[], _T | None], within_s: float, error: SC2PoolError) -> _T:
        """Call `ask` until its result is not None; raise `error` after `within_s`."""
        deadline = Deadline.after(within_s)
        while (answer := ask()) is None:
            if deadline.expired():
                raise error
            time.sleep(_POLL_INTERVAL_S)
        return answer

    def _visible_window(pid: int) -> int | None:
        found: list[int] = []

        def note(handle: int, _: int) -> bool:
            its_pid = wintypes.DWORD()
            _user32.GetWindowThreadProcessId(handle, ctypes.byref(its_pid))
            if its_pid.value == pid and _user32.IsWindowVisible(handle):
                found.append(handle)
            return True

        _user32.EnumWindows(_EachWindow(note), 0)
        return found[0] if found else None

    def _send(key: str, release: int) -> None:
        scan_code, flags = _SCAN_CODES[key]
        press = _Input(_KEYBOARD, _Key(0, scan_code, _SCAN_CODE | flags | release, 0, 0), 0)
        _user32.SendInput(1, ctypes.byref(press), ctypes.sizeof(press))
