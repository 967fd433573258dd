"""Programs that play every env class, in the environment that has its library."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.programs import run

sys.path.insert(0, str(Path(__file__).parent))
from every_class import LIBRARIES

Programs = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run_with(python_with: Callable[[str], str]) -> Programs:
    """`run_with(program, name, …)`: runs it in the environment that has the library of a class."""

    def run_one(program: str, name: str, *more: object, timeout_s: float = 300.0) -> object:
        library = LIBRARIES.get(name, "")
        python = python_with(library) if library else sys.executable
        return run(python, Path(__file__).with_name(program), name, *more, timeout_s=timeout_s)

    return run_one
