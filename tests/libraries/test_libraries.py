"""Other libraries on games: the lines of docs/libraries.md, and the env classes for libraries.

For each library a program beside this file plays 500 steps with the page's line, in the
environment that has the library. One game is killed, and the program reports the library's counts.
It runs once, started by the first test that needs its report.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import blocks
from tests.support.on_ray import environment_for_ray

PROGRAMS = {
    "cleanrl": None,
    "gymnasium": None,
    "rllib": "ray",
    "sb3": None,
    "skrl": "skrl",
    "tianshou": "tianshou",
    "torchrl": "torchrl",
}
"""Each program's library, if it has an environment of its own."""
LEARNERS = set(PROGRAMS) - {"gymnasium", "rllib"}
"""Programs that also train. RLlib's algorithms train in tests/realtime."""
FOLDER = Path(__file__).parent / "programs"
PAGE = FOLDER.parents[2] / "docs" / "libraries.md"
LINE = re.compile(r"\S.*(?:SC2\w+|make_vec|gym_env_vectorize_mode)[(=].*")
"""A line that makes the library's environment."""
TIMEOUT_S = 240.0


@pytest.fixture(scope="module")
def report(
    python_with: Callable[[str], str], standin_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], dict[str, Any]]:
    """`report(name)` returns the report of a program, and runs it at the first call."""

    @cache
    def run(name: str) -> dict[str, Any]:
        library = PROGRAMS[name]
        folder = tmp_path_factory.mktemp(name)
        done = subprocess.run(
            [
                sys.executable if library is None else python_with(library),
                FOLDER / f"with_{name}.py",
                folder / "report.json",
            ],
            cwd=folder,
            env=os.environ
            | {"SC2PATH": str(standin_dir), "HOME": str(folder), "NUMBA_DISABLE_JIT": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:]
        return dict(json.loads((folder / "report.json").read_text()))

    return run


@pytest.mark.standin("its episodes have 240 steps")
@pytest.mark.timeout(TIMEOUT_S + 30)
@pytest.mark.parametrize("name", PROGRAMS)
def test_500_steps_and_one_killed_game(name, report):
    found = report(name)
    assert found["steps"] == 500
    assert found["pool"]["steps"] - found.get("checked", 0) == 500, "none was lost, or made up"
    assert found["pool"]["faults"] == 1
    assert found["marked"] == 1
    assert found["truncated"] == 2, "the fault's, and the other game's end after 240 steps"
    assert found["games left"] == 0


@pytest.mark.standin("its episodes have 240 steps")
@pytest.mark.timeout(TIMEOUT_S + 30)
@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_the_librarys_own_algorithm_learns(name, report):
    assert report(name)["learned"] is True


@pytest.mark.standin("its episodes have 240 steps")
@pytest.mark.timeout(TIMEOUT_S + 30)
def test_torchrl_refuses_next_step_and_says_so(report):
    assert "must be one of SAME_STEP or DISABLED" in report("torchrl")["refusal"]


@pytest.mark.standin("its episodes have 240 steps")
@pytest.mark.timeout(TIMEOUT_S + 30)
def test_torchrls_steps_go_on_where_the_step_before_ended(report):
    assert report("torchrl")["wrong"] == 0


def lines_to_write(text: str) -> set[str]:
    """The lines of a page or program that make an environment."""
    return set(LINE.findall(text))


@pytest.mark.standin("its episodes have 240 steps")
@pytest.mark.timeout(TIMEOUT_S + 30)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_has_a_line_of_the_page(name):
    program = (FOLDER / f"with_{name}.py").read_text()
    assert lines_to_write(program) & lines_to_write(PAGE.read_text())


@pytest.mark.standin("its episodes have 240 steps")
@pytest.mark.timeout(TIMEOUT_S + 30)
def test_every_line_of_the_page_is_in_a_program():
    programs = "".join((FOLDER / f"with_{name}.py").read_text() for name in PROGRAMS)
    of_page = set().union(*(lines_to_write(block.code) for block in blocks(PAGE.read_text())))
    assert of_page - lines_to_write(programs) == set()


SUITE_TIMEOUT_S = 500.0


@pytest.mark.timeout(SUITE_TIMEOUT_S + 30)
@pytest.mark.parametrize("library", ["pettingzoo", "tianshou"])
def test_all_of_its_tests_pass(
    library: str, python_with: Callable[[str], str], tmp_path: Path
) -> None:
    done = subprocess.run(
        [
            python_with(library),
            "-m",
            "pytest",
            Path(__file__).parent / "programs" / f"{library}_env.py",
            "-p",
            "no:cacheprovider",
            f"--basetemp={tmp_path / 'its own'}",
        ],
        cwd=Path(__file__).parents[2],
        # tianshou would compile a few functions for seven seconds of CPU time.
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SUITE_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]


@pytest.mark.timeout(SUITE_TIMEOUT_S + 30)
def test_rllibs_wrapper_takes_it_and_ppo_learns(python_with_ray: str, standin_dir: Path) -> None:
    asked = [python_with_ray, "-c", "import pettingzoo"]
    if subprocess.run(asked, capture_output=True, check=False).returncode != 0:
        pytest.skip("PettingZoo is not installed beside RLlib; ./scripts/test --all installs it")
    with environment_for_ray() as environment:
        done = subprocess.run(
            [python_with_ray, Path(__file__).parent / "programs" / "rllib_parallel.py"],
            cwd=environment["HOME"],
            env=environment | {"SC2PATH": str(standin_dir)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SUITE_TIMEOUT_S,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-3000:]
    assert {"played", "learned"} <= set(done.stdout.splitlines())
