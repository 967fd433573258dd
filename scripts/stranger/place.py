"""Where the stranger works: a clone of the repository, its environment, and terminals."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

PATIENCE_S = 300.0
"""How long anything but the set-up may take; far more than it needs."""


class WrongError(Exception):
    """Something is not as a stranger would expect it."""


def check(condition: object, words: str) -> None:
    """Raise `WrongError` unless the condition holds."""
    if not condition:
        raise WrongError(words)


@dataclass(frozen=True)
class Place:
    """The stranger's folders.

    Attributes:
        root: of the repository that is cloned.
        folder: for all that the stranger makes.
        keep: for the pictures that are to be looked at.
    """

    root: Path
    folder: Path
    keep: Path

    @property
    def clone(self) -> Path:
        return self.folder / "sc2pool"

    @property
    def python(self) -> Path:
        return self.clone / ".venv/bin/python"

    @property
    def sc2pool(self) -> Path:
        return self.clone / ".venv/bin/sc2pool"

    def environment(self, **more: str) -> dict[str, str]:
        """A stranger's: nothing of this program's own but what finds programs and files."""
        kept = ("PATH", "HOME", "LANG", "TERM", "DISPLAY")
        return {name: os.environ[name] for name in kept if name in os.environ} | more

    def start(self, *command: str | Path, **options: Any) -> subprocess.Popen[str]:
        """Start a program in the stranger's folder; its output is read by the caller."""
        given = {
            "cwd": self.folder,
            "env": self.environment(),
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
            "text": True,
        }
        return subprocess.Popen(list(map(str, command)), **(given | options))

    def run(self, *command: str | Path, **options: Any) -> tuple[int, str]:
        """Run a program to its end: its exit code, and all that it printed."""
        with self.start(*command, **options) as process:
            try:
                said, _ = process.communicate(timeout=PATIENCE_S)
            except BaseException:
                process.kill()
                raise
        return process.returncode, said

    def refused(self, *command: str | Path, expected: str) -> None:
        """Check that a program answers with one line that says what is wrong."""
        code, said = self.run(*command)
        lines = [line for line in said.splitlines() if not line.startswith("No StarCraft II found")]
        check(code == 2, f"{command[1:]} ends with {code}, expected 2: {said}")
        check(expected in lines[-1], f"{command[1:]} says {lines[-1]!r}, expected {expected!r}")
        check("Traceback" not in said, f"{command[1:]} prints a traceback: {said}")


def read_until(process: subprocess.Popen[str], text: str) -> str:
    """Read a program's lines up to one with this text; all that was read."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if text in line:
            return said
    raise WrongError(f"it ended before {text!r}: {said}")


def wait_for(condition: Callable[[], Any], what: str) -> Any:
    """What the condition returns once that is something."""
    end_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s:
        answer = condition()
        if answer:
            return answer
        time.sleep(0.1)
    raise WrongError(f"it takes too long until {what}")


def check_gone(processes: list[psutil.Process]) -> None:
    """Check that all of them end."""
    _, alive = psutil.wait_procs(processes, timeout=10.0)
    check(not alive, f"still there: {alive}")


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """A file system of this size in the block; only root can make one."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def terminal(
    width: int, command: list[str | Path], environment: Mapping[str, str]
) -> Iterator[Callable[[], str]]:
    """A program in a terminal of tmux; yields a function that returns what is on its screen."""
    tmux = shutil.which("tmux")
    check(tmux, "there is no tmux")
    session = ["tmux", "-L", f"sc2pool-stranger-{os.getpid()}-{width}"]
    line = shlex.join(map(str, command))

    def ask(*arguments: str) -> str:
        done = subprocess.run(
            [*session, *arguments], env=environment, capture_output=True, text=True, check=False
        )
        return done.stdout

    ask("-f", os.devnull, "new-session", "-d", "-x", str(width), "-y", "24", f"exec {line}")
    try:
        yield lambda: ask("capture-pane", "-p")
    finally:
        ask("kill-server")
