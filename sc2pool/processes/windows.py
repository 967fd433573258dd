"""What only Windows has: Job Objects, descriptors that another process gets copies of, consoles.

A job ends all of its processes when the last handle to it closes, which the system does however
its owner ends. What a member starts is a member, too. So a child gets a job of its own (`Job`), and
this process is in one for the time in which a child is being started (`ending_with_us`).

A socket travels as its description (`socket.share`), a file as a handle that was put into the other
process. Rule: the receiver owns the copy and closes it; the sender keeps, and closes, its own.
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
    """`JOB_OBJECT_LIMIT_BREAKAWAY_OK`: a member may start, on demand, a process that is none."""
    _KILLED: Final = 1
    """The exit code of what a job has ended."""
    _CTRL_C: Final = 0
    _CTRL_BREAK: Final = 1
    """The other events end the program: its console is closed, the user logs off, Windows ends."""
    _CLOSES_WITHIN_S: Final = 60.0
    """The system itself waits for about five seconds."""

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
    """Kept for good: the thread of an event may still be in one when it is removed."""

    def _limit(job: int, flags: int) -> bool:
        limits = _ExtendedLimits(_BasicLimits(flags=flags))
        size_bytes = ctypes.sizeof(limits)
        return bool(
            _kernel32.SetInformationJobObject(job, _LIMIT_CLASS, ctypes.byref(limits), size_bytes)
        )

    class Job:
        """A child and all that it starts, which end when this process ends.

        Args:
            child: just started; what it has started already is no member.

        Raises:
            OSError: the system refuses the job.
        """

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
                if child.poll() is None:  # else there is nothing left to be ended
                    raise error

        def kill(self) -> None:
            """End all of them."""
            if self._handle:
                _kernel32.TerminateJobObject(self._handle, _KILLED)

        def close(self) -> None:
            """End all of them, and give the handle back; may be called again."""
            handle, self._handle = self._handle, None
            if handle:
                _winapi.CloseHandle(handle)

    @cache
    def _own_job() -> int | None:
        """The job that this process is in from now on; None if the system refuses it."""
        job = _kernel32.CreateJobObjectW(None, None)
        if job and _kernel32.AssignProcessToJobObject(job, _kernel32.GetCurrentProcess()):
            return int(job)
        return None

    @contextmanager
    def ending_with_us() -> Iterator[None]:
        """What is started in the block ends with this process from its first instant on.

        Without it a child would stay, suspended, if this process is killed before `CreateProcess`
        has come to its end: it has no job yet. If this process ends in the block, and only then, it
        takes along also what the user's program has started since the first block. Blocks must not
        overlap.
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
        """For a child that no Ctrl-C of the console reaches.

        Without a console (a service, pythonw) it would open a window for its own.
        """
        if _kernel32.GetConsoleWindow():
            return subprocess.CREATE_NEW_PROCESS_GROUP
        return subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW

    @contextmanager
    def closing_breaks() -> Iterator[None]:
        """In the block, a console that is closed and a user who logs off count as Ctrl-Break, too.

        After such an event the system ends the program once its handlers have returned, which
        Python's own does at once. This one returns after the block, or is ended with the program.
        """
        left = threading.Event()

        def handle(event: int) -> bool:  # called in a thread of its own
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
        """A description of this socket, from which the process of this pid makes its own."""
        borrowed = socket.socket(fileno=descriptor)
        try:
            return borrowed.share(pid)
        finally:
            borrowed.detach()

    def socket_of(description: bytes) -> int:
        """The descriptor of a socket that was copied for this process."""
        return socket.fromshare(description).detach()

    def copied_file(descriptor: int, pid: int) -> int:
        """A handle in the process of this pid, of an open file of this one."""
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
