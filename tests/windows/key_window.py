"""A window that prints each key event: "down" or "up", and the key's place (its scan code)."""

from __future__ import annotations

import ctypes
from ctypes import wintypes

KEY_DOWN, KEY_UP = 0x100, 0x101
"""`WM_KEYDOWN`, `WM_KEYUP`."""
VISIBLE_WITH_FRAME = 0x10CF0000
"""`WS_VISIBLE | WS_OVERLAPPEDWINDOW`."""
BLUE = 0xFF0000

user32 = ctypes.WinDLL("user32")
gdi32 = ctypes.WinDLL("gdi32")
Procedure = ctypes.WINFUNCTYPE(
    ctypes.c_ssize_t, wintypes.HWND, wintypes.UINT, wintypes.WPARAM, wintypes.LPARAM
)
user32.DefWindowProcW.restype = ctypes.c_ssize_t
user32.DefWindowProcW.argtypes = Procedure._argtypes_  # type: ignore[attr-defined]
user32.CreateWindowExW.restype = wintypes.HWND
user32.CreateWindowExW.argtypes = (
    wintypes.DWORD,
    wintypes.LPCWSTR,
    wintypes.LPCWSTR,
    wintypes.DWORD,
    *(ctypes.c_int,) * 4,
    *(ctypes.c_void_p,) * 4,
)
gdi32.CreateSolidBrush.restype = wintypes.HANDLE


class WindowClass(ctypes.Structure):
    _fields_ = (
        ("style", wintypes.UINT),
        ("procedure", Procedure),
        ("extra_bytes", ctypes.c_int * 2),
        ("instance", wintypes.HANDLE),
        ("icon", wintypes.HANDLE),
        ("cursor", wintypes.HANDLE),
        ("background", wintypes.HANDLE),
        ("menu", wintypes.LPCWSTR),
        ("name", wintypes.LPCWSTR),
    )


@Procedure
def handle(window: int, message: int, key: int, details: int) -> int:
    if message in (KEY_DOWN, KEY_UP):
        print("down" if message == KEY_DOWN else "up", hex(details >> 16 & 0x1FF), flush=True)
    result: int = user32.DefWindowProcW(window, message, key, details)
    return result


kind = WindowClass(
    procedure=handle, background=gdi32.CreateSolidBrush(BLUE), name="sc2pool-key-window"
)
user32.RegisterClassW(ctypes.byref(kind))
opened = user32.CreateWindowExW(
    0, kind.name, "keys", VISIBLE_WITH_FRAME, 50, 60, 400, 300, None, None, None, None
)
print("open" if opened else "there is no display", flush=True)
message = wintypes.MSG()
while user32.GetMessageW(ctypes.byref(message), None, 0, 0) > 0:
    user32.DispatchMessageW(ctypes.byref(message))
