"""`--game`: which tests it runs, and what it says to an installation that is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def collect(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )


def test_alone_it_runs_the_contract_with_the_game(standin_dir: Path) -> None:
    done = collect(f"--game={standin_dir}")
    assert done.returncode == 0, done.stdout
    folders = {
        line.partition("::")[0].rpartition("/")[0]
        for line in done.stdout.splitlines()
        if "::" in line
    }
    assert folders == {"tests/unit/protocol", "tests/game", "tests/tasks"}


def test_a_wrong_path_is_an_error_at_once(tmp_path: Path) -> None:
    done = collect(f"--game={tmp_path}")
    assert done.returncode == 4
    assert f"{tmp_path} has no folder Versions" in done.stderr
    assert "::" not in done.stdout
