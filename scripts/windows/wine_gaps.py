"""Corrects psutil under Wine, so that it answers as on Windows, or raises AccessDenied.

Wine does not report to which process a connection belongs. A Windows system may also refuse to
report a connection's process; in this case sc2pool reports the listener on a game's port as
unproven. Wine reports a suspended process as running, but counts how often each thread was
suspended. `sc2pool.pth` imports this module at the start of each Python under Wine.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

if sys.platform == "win32" and hasattr(ctypes.WinDLL("ntdll"), "wine_get_version"):
    from ctypes import wintypes

    import psutil

    _THREAD_QUERY_INFORMATION = 0x40
    _SUSPEND_COUNT = 35
    """`ThreadSuspendCount`."""
    _kernel32 = ctypes.WinDLL("kernel32")
    _kernel32.OpenThread.restype = wintypes.HANDLE
    _kernel32.CloseHandle.argtypes = (wintypes.HANDLE,)
    _query = ctypes.WinDLL("ntdll").NtQueryInformationThread
    _query.argtypes = (
        wintypes.HANDLE,
        ctypes.c_int,
        ctypes.c_void_p,
        wintypes.ULONG,
        ctypes.c_void_p,
    )

    def refuse(self: Any, **_: Any) -> Any:
        raise psutil.AccessDenied(self.pid)

    def is_suspended(pid: int) -> bool:
        counts = [_suspend_count(thread.id) for thread in psutil.Process(pid).threads()]
        return counts != [] and all(counts)

    def _suspend_count(thread: int) -> int:
        handle = _kernel32.OpenThread(_THREAD_QUERY_INFORMATION, False, thread)
        count = wintypes.ULONG()
        _query(handle, _SUSPEND_COUNT, ctypes.byref(count), ctypes.sizeof(count), None)
        _kernel32.CloseHandle(handle)
        return count.value

    psutil.Process.net_connections = refuse
    psutil._psutil_windows.proc_is_suspended = is_suspended
