"""The server that runs commands, and ends them at a chosen change of their files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from chaos.attacks import clock

from sc2pool.platform import LINUX

HERE = Path(__file__).parent
NOTHING, KILL, TEAR, FILL = range(4)
"""The possible actions at a change of the files; `ends.c` uses the same numbers for them."""


@dataclass(frozen=True)
class Ended:
    """The facts of a command that has ended."""

    status: int
    """The exit code, or the negative number of the signal that ended the command."""
    said: str
    complaints: str
    changes: list[str]
    """The changes of the folder, in order; each names its kind and the file."""


Run = Callable[..., Ended]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, run_temp: Path) -> Iterator[Run]:
    """`run(folder, arguments)` runs a command; skips tests without a C compiler for Linux."""
    for library in ("torch", "minari", "optuna", "mpyq", "imageio_ffmpeg"):
        pytest.importorskip(library)
    compiler = shutil.which("cc")
    if compiler is None or not LINUX:
        pytest.skip("no C compiler for Linux")
    scratch = tmp_path_factory.mktemp("server")
    ends = scratch / "ends.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-o", ends, HERE / "ends.c", "-ldl"]
    subprocess.run(command, check=True)
    clocks = clock.environment(scratch)
    environment = {
        **os.environ,
        **clocks,
        "LD_PRELOAD": f"{ends}:{clocks['LD_PRELOAD']}",
        "TMPDIR": str(run_temp),
        "PYTHONPATH": str(HERE.parents[1]),
    }
    with subprocess.Popen(
        [sys.executable, HERE / "server.py", scratch],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as server:
        asked, answered = server.stdin, server.stdout
        assert asked is not None
        assert answered is not None
        assert answered.readline() == '"ready"\n'

        def run_command(
            folder: Path,
            arguments: list[object],
            *,
            program: str = "sc2pool",
            environment: dict[str, str] | None = None,
            change: int = 0,
            action: int = NOTHING,
            clock_s: int = 0,
        ) -> Ended:
            """Run a command to its end.

            Args:
                folder: the folder whose changes count.
                arguments: the command's arguments.
                program: the program, `sc2pool` or `sc2standin`.
                environment: further environment variables.
                change: the number of the change at which the action happens, from 1; 0 for none.
                action: what happens at that change.
                clock_s: the number of seconds by which the command's wall clock is ahead.
            """
            request = {
                "folder": str(folder),
                "arguments": [*map(str, arguments)],
                "program": program,
                "environment": environment or {},
                "change": change,
                "action": action,
                "clock_s": clock_s,
            }
            asked.write(json.dumps(request) + "\n")
            asked.flush()
            return Ended(**json.loads(answered.readline()))

        yield run_command
        asked.close()
