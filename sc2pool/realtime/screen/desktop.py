"""Windows' desktop: its windows, and key presses for the window in front.

A key is sent as its scan code (its place on the keyboard), because games read scan codes.
"""

from __future__ import annotations

import ctypes
from typing import Final

from sc2pool.errors import ConfigError, FaultKind, GameFault
from sc2pool.platform import WINDOWS
from sc2pool.realtime.screen.capture import OpenWindow

if WINDOWS:
    from ctypes import wintypes

    _KEYBOARD: Final = 1
    """The constant `INPUT_KEYBOARD` of Windows' API."""
    _EXTENDED, _RELEASE, _SCAN_CODE = 1, 2, 8
    """Flags of `KEYBDINPUT` in Windows' API."""
    _SCAN_CODES: Final = {
        "Up": (0x48, _EXTENDED),
        "Left": (0x4B, _EXTENDED),
        "Right": (0x4D, _EXTENDED),
        "Down": (0x50, _EXTENDED),
        "Return": (0x1C, 0),
        "space": (0x39, 0),
        "Escape": (0x01, 0),
        "BackSpace": (0x0E, 0),
        "Tab": (0x0F, 0),
        "Shift_L": (0x2A, 0),
        "Control_L": (0x1D, 0),
        "Alt_L": (0x38, 0),
        **{f"F{number}": (0x3A + number, 0) for number in range(1, 11)},
    }
    """Scan codes and flags by X11's key names, for keys that are the same in every layout."""
    _VIRTUAL_KEY_TO_SCAN_CODE: Final = 0
    """`MAPVK_VK_TO_VSC`."""

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
            ("rest", ctypes.c_uint64),  # fills the structure to the size that mouse input needs
        )

    _user32 = ctypes.WinDLL("user32", use_last_error=True)
    _EachWindow = ctypes.WINFUNCTYPE(wintypes.BOOL, wintypes.HWND, wintypes.LPARAM)
    _user32.EnumWindows.argtypes = (_EachWindow, wintypes.LPARAM)
    _user32.GetWindowThreadProcessId.argtypes = (wintypes.HWND, ctypes.c_void_p)
    _user32.GetWindowTextLengthW.argtypes = (wintypes.HWND,)
    _user32.GetWindowTextW.argtypes = (wintypes.HWND, wintypes.LPWSTR, ctypes.c_int)
    _user32.IsWindowVisible.argtypes = (wintypes.HWND,)
    _user32.SetForegroundWindow.argtypes = (wintypes.HWND,)
    _user32.GetForegroundWindow.restype = wintypes.HWND
    _user32.ClientToScreen.argtypes = (wintypes.HWND, ctypes.c_void_p)
    _user32.GetClientRect.argtypes = (wintypes.HWND, ctypes.c_void_p)
    _user32.SendInput.argtypes = (wintypes.UINT, ctypes.c_void_p, ctypes.c_int)
    _user32.MapVirtualKeyW.argtypes = (wintypes.UINT, wintypes.UINT)

    class Desktop:
        """The windows and the keyboard of Windows' desktop, with the methods of `X11Screen`."""

        display: str | None = None

        def windows(self) -> list[OpenWindow]:
            """All visible windows."""
            found: list[OpenWindow] = []

            def note(handle: int, _: int) -> bool:
                if _user32.IsWindowVisible(handle):
                    pid = wintypes.DWORD()
                    _user32.GetWindowThreadProcessId(handle, ctypes.byref(pid))
                    found.append(OpenWindow(handle, _title(handle), pid.value))
                return True

            _user32.EnumWindows(_EachWindow(note), 0)
            return found

        def area(self, handle: int) -> tuple[int, int, int, int]:
            """The picture in a window, without its frame; see `X11Screen.area`."""
            corner, size = wintypes.POINT(), wintypes.RECT()
            _user32.ClientToScreen(handle, ctypes.byref(corner))
            _user32.GetClientRect(handle, ctypes.byref(size))
            if not (size.right and size.bottom):
                raise GameFault(FaultKind.CONNECTION_LOST, "the game's window is not open")
            return corner.x, corner.y, size.right, size.bottom

        def is_in_front(self, handle: int) -> bool:
            """True if key presses go to this window."""
            return bool(_user32.GetForegroundWindow() == handle)

        def bring_to_front(self, handle: int) -> None:
            """Ask Windows to send key presses to this window; Windows may refuse."""
            _user32.SetForegroundWindow(handle)

        def check_key(self, key: str) -> None:
            """See `X11Screen.check_key`."""
            if not _scan_code(key)[0]:
                names = ", ".join(_SCAN_CODES)
                raise ConfigError(
                    f"there is no key {key!r}; expected a letter, a digit or one of {names}"
                )

        def send(self, key: str, *, press: bool) -> None:
            """Press or release a key."""
            scan_code, flags = _scan_code(key)
            flags |= _SCAN_CODE | (0 if press else _RELEASE)
            event = _Input(_KEYBOARD, _Key(0, scan_code, flags, 0, 0), 0)
            _user32.SendInput(1, ctypes.byref(event), ctypes.sizeof(event))

        def flush(self) -> None:
            """Do nothing, because Windows has received each press when `SendInput` returns."""

        def close(self) -> None:
            """Do nothing, because nothing is open."""

    def _title(handle: int) -> str:
        text = ctypes.create_unicode_buffer(_user32.GetWindowTextLengthW(handle) + 1)
        _user32.GetWindowTextW(handle, text, len(text))
        return text.value

    def _scan_code(key: str) -> tuple[int, int]:
        """The scan code and the flags of a key; the code is 0 for an unknown key."""
        if key in _SCAN_CODES:
            return _SCAN_CODES[key]
        if len(key) == 1 and key.isascii() and key.isalnum():
            return _user32.MapVirtualKeyW(ord(key.upper()), _VIRTUAL_KEY_TO_SCAN_CODE), 0
        return 0, 0
