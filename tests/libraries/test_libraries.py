"""Other libraries play games, with the lines in docs/libraries.md and sc2pool's classes for them.

For each library, a file in `programs` plays 500 steps with the line from docs/libraries.md, in the
environment that has the library. One game is killed, and the program reports the library's counts.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.pages import blocks
from tests.support.on_ray import environment_for_ray
from tests.support.programs import run

PROGRAMS = {
    "cleanrl": None,
    "gymnasium": None,
    "rllib": "ray",
    "sb3": None,
    "skrl": "skrl",
    "tianshou": "tianshou",
    "torchrl": "torchrl",
}
"""The library of each program, if the library has a Python environment of its own; else None."""
LEARNERS = set(PROGRAMS) - {"gymnasium", "rllib"}
"""The programs that also train. RLlib's algorithms train in tests/realtime instead."""
FOLDER = Path(__file__).parent / "programs"
ROOT = FOLDER.parents[2]
PAGE = (ROOT / "docs" / "libraries.md").read_text()
LINE = re.compile(r"\S.*(?:SC2\w+|make_vec|gym_env_vectorize_mode)[(=].*")
"""Matches a line of code that makes the env for a library, in a page or in a program."""
NO_JIT = {"NUMBA_DISABLE_JIT": "1"}
"""Without this variable, tianshou would spend 7 s of CPU time on compiling a few functions."""
TIMEOUT_S = 240.0
SUITE_TIMEOUT_S = 500.0


@pytest.mark.standin("its episodes have 240 steps")
@pytest.mark.timeout(TIMEOUT_S + 30)
@pytest.mark.parametrize("name", PROGRAMS)
def test_500_steps_and_one_killed_game(
    name: str, python_with: Callable[[str], str], standin_dir: Path, tmp_path: Path
) -> None:
    library = PROGRAMS[name]
    done = run(
        sys.executable if library is None else python_with(library),
        FOLDER / f"with_{name}.py",
        tmp_path / "report.json",
        cwd=tmp_path,
        env=os.environ | NO_JIT | {"SC2PATH": str(standin_dir), "HOME": str(tmp_path)},
        timeout_s=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads((tmp_path / "report.json").read_text())
    assert found["steps"] == 500
    assert found["pool"]["steps"] - found.get("checked", 0) == 500, "none was lost, or made up"
    assert found["pool"]["faults"] == 1
    assert found["marked"] == 1
    assert found["truncated"] == 2, "the fault's, and the other game's end after 240 steps"
    assert found["games left"] == 0
    assert found.get("learned", False) is (name in LEARNERS)
    if name == "torchrl":
        assert "must be one of SAME_STEP or DISABLED" in found["refusal"], "of NEXT_STEP"
        assert found["wrong"] == 0, "each step goes on where the step before ended"


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_has_a_line_of_the_page(name):
    program = (FOLDER / f"with_{name}.py").read_text()
    assert set(LINE.findall(program)) & set(LINE.findall(PAGE))


def test_every_line_of_the_page_is_in_a_program():
    programs = "".join((FOLDER / f"with_{name}.py").read_text() for name in PROGRAMS)
    of_page = {line for block in blocks(PAGE) for line in LINE.findall(block.code)}
    assert of_page - set(LINE.findall(programs)) == set()


@pytest.mark.timeout(SUITE_TIMEOUT_S + 30)
@pytest.mark.parametrize("library", ["pettingzoo", "tianshou"])
def test_all_of_its_tests_pass(
    library: str, python_with: Callable[[str], str], tmp_path: Path
) -> None:
    tests = [FOLDER / f"{library}_env.py", "-p", "no:cacheprovider"]
    done = run(
        *(python_with(library), "-m", "pytest", *tests, f"--basetemp={tmp_path / 'its own'}"),
        cwd=ROOT,
        env=os.environ | NO_JIT,
        timeout_s=SUITE_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout[-6000:]


@pytest.mark.timeout(SUITE_TIMEOUT_S + 30)
def test_rllibs_wrapper_takes_it_and_ppo_learns(python_with_ray: str, standin_dir: Path) -> None:
    if run(python_with_ray, "-c", "import pettingzoo").returncode != 0:
        pytest.skip("PettingZoo is not installed beside RLlib; ./scripts/test --all installs it")
    with environment_for_ray() as environment:
        done = run(
            *(python_with_ray, FOLDER / "rllib_parallel.py"),
            cwd=environment["HOME"],
            env=environment | {"SC2PATH": str(standin_dir)},
            timeout_s=SUITE_TIMEOUT_S,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    assert {"played", "learned"} <= set(done.stdout.splitlines())
