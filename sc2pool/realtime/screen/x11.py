"""An X server's windows, and its keyboard. Games see XTEST's presses as a person's key presses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from sc2pool.errors import ConfigError, FaultKind, GameFault
from sc2pool.optional import needed_for
from sc2pool.realtime.screen.capture import Area, OpenWindow


class X11Screen:
    """The screen and the keyboard of one display; keys have X11's names, such as `"Right"`.

    Raises `ConfigError` if the display does not exist.
    """

    def __init__(self, display: str) -> None:
        with needed_for("a game on an X11 display"):
            from Xlib import XK, X, error  # noqa: PLC0415
            from Xlib.display import Display  # noqa: PLC0415
            from Xlib.ext import xtest  # noqa: PLC0415

        self.display = display
        self._x, self._keysym, self._fake = X, XK.string_to_keysym, xtest.fake_input
        self._gone = (error.BadWindow, error.BadDrawable, error.BadMatch)
        self._connection_errors = (error.ConnectionClosedError, OSError)
        try:
            self._display = Display(display)
        except (error.DisplayError, OSError) as problem:
            raise ConfigError(f"there is no display {display!r}: {problem}") from problem
        # Ignore errors of requests without a reply, because other requests notice a closed window.
        self._display.set_error_handler(lambda *_: None)
        self._root = self._display.screen().root

    def windows(self) -> list[OpenWindow]:
        """All visible windows of programs.

        If no window manager lists the windows, the result has all windows that have a title or lie
        directly on the screen.
        """
        managed = self._property(self._root, "_NET_CLIENT_LIST")
        if managed is None:
            return list(self._below(self._root, top=True))
        return [one for handle in managed for one in self._seen(self._window(handle))]

    def _window(self, handle: int) -> Any:
        return self._display.create_resource_object("window", handle)

    def _seen(self, window: Any) -> Iterator[OpenWindow]:
        """The window, if it is visible."""
        with suppress(*self._gone):  # the window may have been closed since it was listed
            if window.get_attributes().map_state == self._x.IsViewable:
                yield OpenWindow(window.id, self._title(window), self._pid(window))

    def _below(self, window: Any, *, top: bool = False) -> Iterator[OpenWindow]:
        with suppress(*self._gone):
            for child in window.query_tree().children:
                for one in self._seen(child):
                    if top or one.title:
                        yield one
                    yield from self._below(child)

    def _title(self, window: Any) -> str:
        title = self._property(window, "_NET_WM_NAME") or self._property(window, "WM_NAME") or b""
        return title.decode(errors="replace") if isinstance(title, bytes) else str(title)

    def _pid(self, window: Any) -> int | None:
        pid = self._property(window, "_NET_WM_PID")
        return int(pid[0]) if pid else None

    def _property(self, window: Any, name: str) -> Any:
        atom = self._display.intern_atom(name)
        found = window.get_full_property(atom, self._x.AnyPropertyType)
        return None if found is None else found.value

    def area(self, handle: int) -> Area:
        """The place of a window on the screen; `GameFault` if the window is closed."""
        window = self._window(handle)
        try:
            size = window.get_geometry()
            corner = self._root.translate_coords(window, 0, 0)
            shown = window.get_attributes().map_state == self._x.IsViewable
        except self._gone as error:
            raise GameFault(FaultKind.CONNECTION_LOST, "the game's window is closed") from error
        if not shown:
            raise GameFault(FaultKind.CONNECTION_LOST, "the game's window is not open")
        return corner.x, corner.y, size.width, size.height

    def is_in_front(self, handle: int) -> bool:
        """True if key presses go to this window or to a window inside it."""
        window = self._display.get_input_focus().focus
        with suppress(*self._gone):
            while not isinstance(window, int) and window.id != self._root.id:
                if window.id == handle:
                    return True
                window = window.query_tree().parent
        return False

    def bring_to_front(self, handle: int) -> None:
        """Ask the X server to send key presses to this window; the window manager may refuse."""
        window = self._window(handle)
        with suppress(*self._gone):
            window.configure(stack_mode=self._x.Above)
            window.set_input_focus(self._x.RevertToParent, self._x.CurrentTime)
            self._display.sync()

    def check_key(self, key: str) -> None:
        """Raise `ConfigError` unless the keyboard has this key."""
        keysym = self._keysym(key)
        if not keysym or not self._display.keysym_to_keycode(keysym):
            raise ConfigError(
                f"there is no key {key!r}; expected a name of X11: 'Right', 'space', 'Return', 'a'"
            )

    def send(self, key: str, *, press: bool) -> None:
        """Press or release a key."""
        event = self._x.KeyPress if press else self._x.KeyRelease
        self._fake(self._display, event, self._display.keysym_to_keycode(self._keysym(key)))

    def flush(self) -> None:
        """Return when all presses have reached the server."""
        self._display.sync()

    def close(self) -> None:
        """Close the connection, even if the display has ended."""
        with suppress(*self._connection_errors):
            self._display.close()
