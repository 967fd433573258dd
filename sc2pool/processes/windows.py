"""Job Objects, descriptors and consoles of Windows; only `closing_breaks` is for all systems.

A job ends all its processes when the last handle to the job closes. Whatever ends the handle's
owner, the system closes the handle. If a member of a job starts a process, the new process is a
member as well. So a child gets its own job (`Job`), and this process is in a job while it starts a
child (`ending_with_us`).

To give a socket to another process, a description of the socket (`socket.share`) is sent. To give a
file, a handle is sent that was duplicated into the other process. Rule: the receiver owns and
closes the copy; the sender owns and closes the original.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

from sc2pool.platform import WINDOWS

if WINDOWS:
    import _winapi
    import msvcrt
    from ctypes import wintypes

    _LIMIT_CLASS: Final = 9
    """`JobObjectExtendedLimitInformation`."""
    _KILL_ON_CLOSE: Final = 0x2000
    """`JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE`."""
    _MAY_LEAVE: Final = 0x800
    """`JOB_OBJECT_LIMIT_BREAKAWAY_OK`: a member may request to start a process outside the job."""
    _KILLED: Final = 1
    """The exit code of processes that a job has ended."""
    _CTRL_C: Final = 0
    _CTRL_BREAK: Final = 1
    """Events with higher numbers end the program: a closed console, a logoff of the user, or a
    shutdown of Windows."""
    _CLOSES_WITHIN_S: Final = 60.0
    """How long a handler waits; the system waits for the handler only about five seconds."""

    class _BasicLimits(ctypes.Structure):
        _fields_ = (
            ("per_process_user_time", ctypes.c_int64),
            ("per_job_user_time", ctypes.c_int64),
            ("flags", wintypes.DWORD),
            ("minimum_working_set", ctypes.c_size_t),
            ("maximum_working_set", ctypes.c_size_t),
            ("active_processes", wintypes.DWORD),
            ("affinity", ctypes.c_size_t),
            ("priority_class", wintypes.DWORD),
            ("scheduling_class", wintypes.DWORD),
        )

    class _ExtendedLimits(ctypes.Structure):
        _fields_ = (
            ("basic", _BasicLimits),
            ("io_counters", ctypes.c_uint64 * 6),
            ("process_memory", ctypes.c_size_t),
            ("job_memory", ctypes.c_size_t),
            ("peak_process_memory", ctypes.c_size_t),
            ("peak_job_memory", ctypes.c_size_t),
        )

    _kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
    _kernel32.CreateJobObjectW.restype = wintypes.HANDLE
    _kernel32.CreateJobObjectW.argtypes = (ctypes.c_void_p, wintypes.LPCWSTR)
    _kernel32.SetInformationJobObject.argtypes = (
        wintypes.HANDLE,
        ctypes.c_int,
        ctypes.c_void_p,
        wintypes.DWORD,
    )
    _kernel32.AssignProcessToJobObject.argtypes = (wintypes.HANDLE, wintypes.HANDLE)
    _kernel32.TerminateJobObject.argtypes = (wintypes.HANDLE, wintypes.UINT)
    _kernel32.GetCurrentProcess.restype = wintypes.HANDLE
    _kernel32.GetConsoleWindow.restype = wintypes.HWND
    _ConsoleHandler = ctypes.WINFUNCTYPE(wintypes.BOOL, wintypes.DWORD)
    _kernel32.SetConsoleCtrlHandler.argtypes = (_ConsoleHandler, wintypes.BOOL)
    _handlers: list[object] = []
    """Handlers are never freed: an event's thread may still run a handler that was removed."""

    def _limit(job: int, flags: int) -> bool:
        limits = _ExtendedLimits(_BasicLimits(flags=flags))
        size_bytes = ctypes.sizeof(limits)
        return bool(
            _kernel32.SetInformationJobObject(job, _LIMIT_CLASS, ctypes.byref(limits), size_bytes)
        )

    class Job:
        """Ends a child and its descendants when this process ends; may raise OSError."""

        def __init__(self, child: subprocess.Popen[bytes]) -> None:
            self._handle = _kernel32.CreateJobObjectW(None, None)
            if not self._handle:
                raise ctypes.WinError(ctypes.get_last_error())
            process = child._handle  # type: ignore[attr-defined]
            if not (
                _limit(self._handle, _KILL_ON_CLOSE)
                and _kernel32.AssignProcessToJobObject(self._handle, int(process))
            ):
                error = ctypes.WinError(ctypes.get_last_error())
                self.close()
                if child.poll() is None:  # no error if the child has already ended
                    raise error

        def kill(self) -> None:
            """End all processes of the job."""
            if self._handle:
                _kernel32.TerminateJobObject(self._handle, _KILLED)

        def close(self) -> None:
            """End all processes of the job and close its handle; may be called again."""
            handle, self._handle = self._handle, None
            if handle:
                _winapi.CloseHandle(handle)

    @cache
    def _own_job() -> int | None:
        """Put this process into a job, at the first call; None if the system refuses the job."""
        job = _kernel32.CreateJobObjectW(None, None)
        if job and _kernel32.AssignProcessToJobObject(job, _kernel32.GetCurrentProcess()):
            return int(job)
        return None

    @contextmanager
    def ending_with_us() -> Iterator[None]:
        """Within the block, new children end with this process from the moment of their start.

        A child gets its `Job` only after `CreateProcess` has returned. Without this block, a child
        would stay suspended if this process were killed before the child has its `Job`. If this
        process ends in the block, all processes that it has started since the first block also end.
        Blocks must not overlap.
        """
        job = _own_job()
        if job is None:
            yield
            return
        _limit(job, _KILL_ON_CLOSE | _MAY_LEAVE)
        try:
            yield
        finally:
            _limit(job, _MAY_LEAVE)

    def creation_flags() -> int:
        """Flags for a child: it gets no Ctrl-C, and opens no console if this process has none."""
        if _kernel32.GetConsoleWindow():
            return subprocess.CREATE_NEW_PROCESS_GROUP
        return subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW

    @contextmanager
    def closing_breaks() -> Iterator[None]:
        """Within the block, treat a closing console and a logoff of the user as Ctrl-Break.

        After such an event the system ends the program when the program's handlers have returned.
        Python's own handler returns immediately; this handler returns after the block.
        """
        left = threading.Event()

        def handle(event: int) -> bool:  # Windows calls the handler in a thread of its own
            if event == _CTRL_C:
                return False
            _thread.interrupt_main(signal.SIGBREAK)
            if event != _CTRL_BREAK:
                left.wait(_CLOSES_WITHIN_S)
            return True

        handler = _ConsoleHandler(handle)
        _handlers.append(handler)
        _kernel32.SetConsoleCtrlHandler(handler, True)
        try:
            yield
        finally:
            left.set()
            _kernel32.SetConsoleCtrlHandler(handler, False)

    def copied_socket(descriptor: int, pid: int) -> bytes:
        """A description of this socket, from which the process with this pid can make a copy."""
        borrowed = socket.socket(fileno=descriptor)
        try:
            return borrowed.share(pid)
        finally:
            borrowed.detach()

    def socket_of(description: bytes) -> int:
        """The descriptor of a socket that was copied for this process."""
        return socket.fromshare(description).detach()

    def copied_file(descriptor: int, pid: int) -> int:
        """Duplicate an open file into the process with this pid; return the copy's handle there."""
        process = _winapi.OpenProcess(_winapi.PROCESS_DUP_HANDLE, False, pid)
        try:
            return _winapi.DuplicateHandle(
                _winapi.GetCurrentProcess(),
                msvcrt.get_osfhandle(descriptor),
                process,
                0,
                False,
                _winapi.DUPLICATE_SAME_ACCESS,
            )
        finally:
            _winapi.CloseHandle(process)

    def file_of(handle: int) -> int:
        """The descriptor of a file that was copied for this process."""
        return msvcrt.open_osfhandle(handle, os.O_RDWR | os.O_BINARY | os.O_NOINHERIT)

else:

    @contextmanager
    def closing_breaks() -> Iterator[None]:
        """Do nothing: other systems send a signal if a terminal is closed."""
        yield
