"""A keyboard for one display: presses reach the game as a person's would (XTEST)."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Final

LEAST_HELD_S: Final = 0.1
"""The game looks at its keys once a tick; a shorter press may pass unseen on a busy machine."""


class Keyboard:
    """Holds keys down, named as X11 names them: `"Right"`, `"space"`.

    Args:
        display: its name, `":1"`.
    """

    def __init__(self, display: str) -> None:
        # `needs` has told what to install where it is missing.
        from Xlib import XK, X  # noqa: PLC0415
        from Xlib.display import Display  # noqa: PLC0415
        from Xlib.error import ConnectionClosedError  # noqa: PLC0415
        from Xlib.ext import xtest  # noqa: PLC0415

        self._display = Display(display)
        self._keysym = XK.string_to_keysym
        self._fake = xtest.fake_input
        self._press, self._release = X.KeyPress, X.KeyRelease
        self._gone = ConnectionClosedError
        self._held: frozenset[str] = frozenset()

    def hold(self, keys: Collection[str]) -> None:
        """Hold down these keys and no others; one that is down already stays so."""
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
        """Leave the display, which may be gone."""
        with suppress(self._gone):
            self._display.close()
