"""Makes only a Windows Python collect the tests of this folder, and starts their programs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sc2pool.platform import WINDOWS

collect_ignore_glob = [] if WINDOWS else ["test_*.py"]


@pytest.fixture
def program(
    standin_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a program of `programs.py`, and kills the program at the end of the test."""
    monkeypatch.setenv("SC2PATH", str(standin_dir))
    with ExitStack() as started:

        def start(name: str, *arguments: str) -> subprocess.Popen[str]:
            process = started.enter_context(
                subprocess.Popen(
                    [sys.executable, Path(__file__).with_name("programs.py"), name, *arguments],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            started.callback(process.kill)
            return process

        yield start
