"""`examples/first_steps.ipynb` runs from top to bottom without StarCraft II."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.programs import run
from tests.tiers import is_long

PROGRAM = Path(__file__).parent / "programs" / "run_notebook.py"
NOTEBOOK = Path(__file__).parents[2] / "examples" / "first_steps.ipynb"
SHORT = "256"
"""The number of steps that each training of the notebook takes in a short test run."""


@pytest.mark.standin("its scores are the stand-in's")
@pytest.mark.timeout(900)
def test_it_trains_watches_kills_and_plays(
    python_with: Callable[[str], str], standin_dir: Path, tmp_path: Path
) -> None:
    done = run(
        *(python_with("nbclient"), PROGRAM, NOTEBOOK, *([] if is_long() else [SHORT])),
        # HOME is the test's own folder, because Jupyter keeps files in HOME.
        env={**os.environ, "SC2PATH": str(standin_dir), "HOME": str(tmp_path)},
        cwd=tmp_path,
        timeout_s=800,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    shown = json.loads(done.stdout)
    assert shown["kinds"].count("image/gif") == 2
    assert shown["text"].count("truncated: the game ended: signal SIGKILL") == 1
    assert shown["text"].count("plays on: [False False False False]") == 2
    learned = float(re.search(r"mean return (\S+); a person", shown["text"])[1])
    after = float(re.search(r"(\S+) after the training", shown["text"])[1])
    if is_long():
        assert learned > 15
        assert after > 40
