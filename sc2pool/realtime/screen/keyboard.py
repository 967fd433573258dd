"""A virtual keyboard for one display; the game gets its key presses like a person's (XTEST)."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Final, Protocol

MIN_PRESS_S: Final = 0.1
"""Minimum duration of a press, because a game on a busy machine reads its keys late."""


class Keys(Protocol):
    """Presses the game's keys: a `Keyboard`, or Windows' `Desktop`."""

    def aim_at(self, pid: int) -> None:
        """Send the keys to this process from now on."""

    def hold(self, keys: Collection[str]) -> None:
        """Hold down only these keys."""

    def close(self) -> None:
        """Release the keyboard; may be called again."""


class Keyboard:
    """Holds keys down; keys have their X11 names, such as `"Right"` and `"space"`.

    Args:
        display: name of the display, for example `":1"`.
    """

    def __init__(self, display: str) -> None:
        # Imported here, after `needs` has checked that Xlib is installed.
        from Xlib import XK, X  # noqa: PLC0415
        from Xlib.display import Display  # noqa: PLC0415
        from Xlib.error import ConnectionClosedError  # noqa: PLC0415
        from Xlib.ext import xtest  # noqa: PLC0415

        self._display = Display(display)
        self._keysym = XK.string_to_keysym
        self._fake = xtest.fake_input
        self._press, self._release = X.KeyPress, X.KeyRelease
        self._connection_error = ConnectionClosedError
        self._held: frozenset[str] = frozenset()

    def aim_at(self, pid: int) -> None:
        """Do nothing, because no other process has a window on this display."""

    def hold(self, keys: Collection[str]) -> None:
        """Hold down only these keys; a key that is already down is not pressed again."""
        wanted = frozenset(keys)
        for key in self._held - wanted:
            self._send(self._release, key)
        for key in wanted - self._held:
            self._send(self._press, key)
        self._held = wanted
        self._display.sync()

    def _send(self, event: int, key: str) -> None:
        self._fake(self._display, event, self._display.keysym_to_keycode(self._keysym(key)))

    def close(self) -> None:
        """Close the connection, even if the display has ended."""
        with suppress(self._connection_error):
            self._display.close()
