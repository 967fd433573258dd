"""The environments in which other libraries' clients play: what is said if one cannot be made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.programs import run

SCRIPT = Path(__file__).with_name("run_smac.py")


def play(*options: str | Path) -> subprocess.CompletedProcess[str]:
    """SMAC plays one scenario, in an environment that has to be made."""
    return run(sys.executable, SCRIPT, "play", "3m", *options)


def test_a_source_that_cannot_be_had_is_named_without_a_traceback(tmp_path):
    source = (tmp_path / "nowhere").as_uri()
    ran = play("--environment", tmp_path / "smac", "--python", sys.executable, "--source", source)
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    last = ran.stderr.splitlines()[-1]
    assert last == f"pip could not install {source}; --source takes a folder, too"
    assert not (tmp_path / "smac" / "prepared").exists()


def test_a_python_that_is_not_there_is_named_without_a_traceback(tmp_path):
    python = tmp_path / "python"
    ran = play("--environment", tmp_path / "smac", "--python", python)
    assert ran.returncode == 1
    assert ran.stderr == f"{python} made no environment in {tmp_path / 'smac'}\n"
