"""Starts programs for tests, and checks that processes end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from sc2pool.platform import LINUX

GONE_WITHIN_S = 2.0
"""The seconds within which a process must end after its trainer has ended."""


def run(
    *words: object, timeout_s: float = 300.0, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; returns its exit code and output.

    Args:
        words: The command line.
        timeout_s: The time limit of the program.
        options: Further options of `subprocess.run`.
    """
    piped: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    return subprocess.run([*map(str, words)], check=False, timeout=timeout_s, **(piped | options))


def start(*words: object, **options: Any) -> subprocess.Popen[str]:
    """Start a program whose output is read, with further options of `subprocess.Popen`."""
    piped: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*map(str, words)], **(piped | options))


@contextmanager
def talking(*words: object, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A running program with which the block exchanges text; it is killed when the block ends.

    Args:
        words: The command line.
        options: Further options of `subprocess.Popen`.
    """
    piped: dict[str, Any] = {"stdin": subprocess.PIPE, "stderr": None}
    with start(*words, **(piped | options)) as program:
        try:
            yield program
        finally:
            program.kill()


PER_GAME: Final = 1 if LINUX else 2
"""Number of processes of one game: 2 if a guard process must end the game after its parent."""

by_the_kernel = pytest.mark.skipif(
    not LINUX, reason="elsewhere a worker ends itself, if it can run and no fork has its lifeline"
)


class Trainer:
    """A running program that prints its stage and its children as lines of JSON.

    The program is ended when the `with` block ends.

    Args:
        program: The file of a Python program.
        arguments: The arguments of the program's command line.
    """

    def __init__(self, program: Path, *arguments: object) -> None:
        self.process = start(sys.executable, program, *arguments, stdin=subprocess.PIPE)
        self.children: list[psutil.Process] = []

    def __enter__(self) -> Trainer:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        # The streams are not read to their end, because children of the program may keep them open.
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def wait_for_stage(self, stage: str) -> dict[str, Any]:
        """Wait until the program gets to this stage; returns the line that it prints there."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said: dict[str, Any] = json.loads(line)
            if said["stage"] == stage:
                self.children = [psutil.Process(pid) for pid in said.get("children", [])]
                return said
        raise AssertionError(f"it never got to {stage!r}: {self.process.communicate()[1]}")


def has_ended(process: psutil.Process) -> bool:
    """True if the process has ended, or is a zombie that only its new parent can reap."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def assert_gone(processes: Iterable[psutil.Process], within_s: float = GONE_WITHIN_S) -> None:
    """Fails if one of these processes has not ended within the time limit."""
    _, left = psutil.wait_procs(processes, timeout=within_s)
    assert [process for process in left if not has_ended(process)] == []
