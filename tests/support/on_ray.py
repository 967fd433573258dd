"""Runs each program that uses Ray once, in the environment that has Ray."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

Report = Callable[[], dict[str, Any]]
TIMEOUT_S = 1800.0
"""Time limit of a program in seconds; a machine with no other load needs up to 200 s."""


def report_of(python: str, program: Path, *arguments: object, cases: str = "") -> Report:
    """A function that runs the program at its first call, and returns its report.

    Args:
        python: The interpreter that has Ray.
        program: The program's file; its arguments are a folder for Ray and the path of its report.
        arguments: The further arguments of the program.
        cases: The cases to run, separated by commas; all cases if empty.
    """

    @cache
    def outcome() -> dict[str, Any] | Exception:
        try:
            return _run(python, program, arguments, cases)
        except Exception as error:  # each test raises the stored error, without a second long run
            return error

    def report() -> dict[str, Any]:
        found = outcome()
        if isinstance(found, Exception):
            raise found
        return found

    return report


def cases_of(report: Report) -> Callable[[str], Any]:
    """`case(name)`: the result of a case in the report; fails the test if the case failed."""

    def case(name: str) -> Any:
        found = report()[name]
        assert "traceback" not in found, found["traceback"]
        return found

    return case


def _run(python: str, program: Path, arguments: tuple[object, ...], cases: str) -> dict[str, Any]:
    with environment_for_ray() as environment:
        folder = environment["HOME"]
        written = Path(folder, "report.json")
        subprocess.run(
            [python, program, folder, written, *arguments],
            env=environment | {"RAY_CASES": cases},
            stdin=subprocess.DEVNULL,
            timeout=TIMEOUT_S,
            check=True,
        )
        return dict(json.loads(written.read_text()))


@contextmanager
def environment_for_ray() -> Iterator[dict[str, str]]:
    """The environment variables of a program that uses Ray, with a home for all files it writes."""
    # Ray keeps sockets in its folder, and the path of a socket has at most 107 bytes.
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    Path(folder, "ray").mkdir()
    try:
        yield os.environ | {
            "HOME": folder,  # RLlib writes its logs into HOME
            "RAY_TMPDIR": folder,
            "RAY_AUTH_MODE": "disabled",
            "RAY_USAGE_STATS_ENABLED": "0",
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)
