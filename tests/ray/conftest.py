"""Clusters of raylets on this machine, in a process with Ray; and installations of two versions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sc2standin.install import install
from tests.tiers import LONGER

Report = Callable[[], dict[str, Any]]
TIMEOUT_S = 900.0
"""Of a program; a calm machine needs up to 200 s."""
LONG = bool(os.environ.get(LONGER))
only_long = pytest.mark.skipif(not LONG, reason=f"of the long form, which {LONGER}=1 runs")


@pytest.fixture(scope="session")
def other_version(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation of the stand-in that reports another version."""
    folder: Path = tmp_path_factory.mktemp("other") / "StarCraftII"
    executable = install(folder)
    program = (
        "import sys, sc2standin.version as version; version.GAME_VERSION = 'standin-2'; "
        "from sc2standin.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    script = executable.read_text().replace("-m sc2standin", f'-c "{program}"')
    executable.write_text(script)
    return folder


@pytest.fixture(scope="session")
def run_on_ray(python_with_ray: str) -> Callable[..., Report]:
    """`run_on_ray(program, …)`: a function that runs it once and returns its report.

    `cases`, separated by commas, are those that it shall run; all if there are none. The program
    gets a folder for Ray's files and the path of its report, then the other arguments.
    """

    def make(program: Path, *arguments: object, cases: str = "") -> Report:
        @cache
        def outcome() -> dict[str, Any] | Exception:
            try:
                return played()
            except Exception as error:  # for each test that asks: a second try would take as long
                return error

        def report() -> dict[str, Any]:
            found = outcome()
            if isinstance(found, Exception):
                raise found
            return found

        def played() -> dict[str, Any]:
            # Ray's sockets lie in its folder, and the path of a socket has at most 107 bytes.
            folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
            written = Path(folder, "report.json")
            Path(folder, "ray").mkdir()
            try:
                subprocess.run(
                    [python_with_ray, program, folder, written, *arguments],
                    env=os.environ
                    | {
                        "HOME": folder,
                        "RAY_TMPDIR": folder,
                        "RAY_AUTH_MODE": "disabled",
                        "RAY_USAGE_STATS_ENABLED": "0",
                        "RAY_CASES": cases,
                    },
                    stdin=subprocess.DEVNULL,
                    timeout=TIMEOUT_S,
                    check=True,
                )
                return dict(json.loads(written.read_text()))
            finally:
                shutil.rmtree(folder, ignore_errors=True)

        return report

    return make
