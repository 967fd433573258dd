"""Facts about this operating system, and functions for it, that tests need."""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from sc2pool.platform import WINDOWS
from sc2pool.processes import windows
from sc2pool.processes.with_parent import Follower
from sc2standin.install import windows_program

EXECUTABLE = "SC2_x64.exe" if WINDOWS else "SC2_x64"
"""Name of the game's executable, in the folder of its version."""
SLEEPS = (sys.executable, "-S", "-c", "import time; time.sleep(600)")
"""The command line of a process that does nothing."""
KILLED = (1, signal.SIGTERM) if WINDOWS else (-signal.SIGKILL,)
"""Exit codes of a killed process; on Windows, `subprocess` and jobs give 1, and psutil gives 15."""

WINE = WINDOWS and hasattr(ctypes.WinDLL("ntdll"), "wine_get_version")
not_told_by_wine = pytest.mark.skipif(WINE, reason="Wine does not tell it, see docs/windows.md")
"""Under Wine, skips tests that need a connection's owner, or another process's CPU time."""


def is_private(folder: Path) -> bool:
    """True if only this user may read the folder; on Windows the parent folders decide who may."""
    return WINDOWS or stat.S_IMODE(folder.stat().st_mode) == 0o700


def write_program(path: Path, program: str) -> Path:
    """Write an executable that runs this Python program; on Windows the name ends in `.exe`."""
    if WINDOWS:
        executable = path.with_suffix(".exe")
        executable.write_bytes(windows_program(program))
        return executable
    source = path.with_suffix(".py")
    source.write_text(program)
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P "{source}" "$@"\n')
    path.chmod(0o755)
    return path


def strike(pid: int, name: str) -> None:
    """Kill this process if the name is `KILL`, or stop it if the name is `STOP`."""
    process = psutil.Process(pid)
    if name == "KILL":
        process.kill()
        return
    # The process may be a program that started the game, such as the launcher on Windows.
    for one in (process, *process.children(recursive=True)):
        one.suspend()


def start_group(program: str, *arguments: str) -> Follower:
    """Start a Python program whose output is read; `kill` ends it with all that it has started."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", program, *arguments], stdout=subprocess.PIPE, process_group=0
    )
    if WINDOWS:
        return Follower(process, windows.Job(process))
    return Follower(process, os.open(os.devnull, os.O_WRONLY))
