"""docs/test-a-bot.md: its two files, as pytest runs them for a user."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .pages import PYTHON, blocks

PAGE = Path(__file__).parents[2] / "docs" / "test-a-bot.md"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The user's project, in a folder of its own."""
    conftest, test = (block.code for block in blocks(PAGE.read_text()) if block.language == PYTHON)
    (tmp_path / "conftest.py").write_text(conftest)
    (tmp_path / "test_my_bot.py").write_text(test)
    return tmp_path


def run_pytest(project: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=project,
        env={name: value for name, value in os.environ.items() if name != "SC2PATH"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_bot_passes(project: Path) -> None:
    done = run_pytest(project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_a_bot_that_does_nothing_fails(project: Path) -> None:
    test = project / "test_my_bot.py"
    test.write_text(test.read_text().replace("town.train(UnitTypeId.SCV)", "pass"))
    done = run_pytest(project)
    assert done.returncode == 1
    assert "test_it_trains_workers" in done.stdout
