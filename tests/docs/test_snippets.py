"""Every code block of the README and of `docs/` works: all Python is run, and each command is
parsed by its program.

A page's Python is one program: its blocks in order, with the page's line numbers, so a failure
names the page's line. It plays the stand-in, in its own process and folder.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sc2pool.cli.main import make_parser

from .pages import ENDED, blocks, commands, find_pages, program

ROOT = Path(__file__).parents[2]
PAGES = find_pages(ROOT)
WITH_PYTHON = [page for page in PAGES if program(page.read_text())[1]]
WITH_RAY = [page for page in PAGES if program(page.read_text(), with_ray=True)[1]]
PAGE_TIMEOUT_S = 150.0
PYTHONS = {"python", ".venv/bin/python"}
OTHER_PROGRAMS = {"mkdocs", "tensorboard", "unzip", "mkdir", "my_python_sc2_bot.py"}
"""Programs whose arguments are not checked."""

pytestmark = pytest.mark.standin("snippets are run with the figures of its rules")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def run_page(
    page: Path, folder: Path, game: Path, python_with_ray: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run all Python of a page; with an interpreter for RLlib, the blocks that need RLlib."""
    file = folder / f"{page.stem}.md.py"
    file.write_text(program(page.read_text(), python_with_ray is not None)[0])
    return subprocess.run(
        [python_with_ray or sys.executable, "-W", "error::SyntaxWarning", str(file)],
        cwd=folder,
        env={
            **os.environ,
            "SC2PATH": str(game),
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",  # the games need the cores
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PAGE_TIMEOUT_S,
        check=False,
    )


@pytest.mark.timeout(PAGE_TIMEOUT_S + 30)
@pytest.mark.parametrize("page", WITH_PYTHON, ids=name_of)
def test_all_python_of_the_page_runs(page: Path, tmp_path: Path, standin_dir: Path):
    done = run_page(page, tmp_path, standin_dir)
    assert done.returncode == 0, done.stdout + done.stderr
    ran = [line for line in done.stdout.splitlines() if line.startswith(ENDED)]
    assert ran == program(page.read_text())[1]


@pytest.mark.timeout(PAGE_TIMEOUT_S + 30)
@pytest.mark.parametrize("page", WITH_RAY, ids=name_of)
def test_all_python_of_the_page_for_rllib_runs(
    page: Path, tmp_path: Path, standin_dir: Path, python_with_ray: str
):
    done = run_page(page, tmp_path, standin_dir, python_with_ray)
    assert done.returncode == 0, done.stdout + done.stderr
    ran = [line for line in done.stdout.splitlines() if line.startswith(ENDED)]
    assert ran == program(page.read_text(), with_ray=True)[1]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_all_commands_of_the_page_can_be_given(page: Path, capsys: pytest.CaptureFixture[str]):
    for words in commands(page.read_text()):
        problem = problem_with(words)
        assert problem is None, f"{' '.join(words)}: {problem} {capsys.readouterr().err}"


def problem_with(words: list[str]) -> str | None:
    """The error in a command; None if there is none."""
    while words and re.fullmatch(r"[A-Z0-9_]+=.*", words[0]):
        words = words[1:]
    if not words:
        return None
    if words[0] in PYTHONS:
        words = words[1:]
    program, *arguments = words
    problem = None
    if program == "pip":
        problem = problem_with_extras(" ".join(arguments))
    elif program == "sc2pool":
        problem = problem_with_arguments(arguments)
    elif words[:2] == ["-m", "sc2pool.standin"]:
        problem = problem_with_arguments(["standin", *words[2:]])
    elif program == "-m" and words[1].startswith("examples."):
        there = (ROOT / words[1].replace(".", "/")).with_suffix(".py").is_file()
        problem = None if there else "there is no such example"
    elif program == "./scripts/train":
        problem = problem_with_arguments(["train", *arguments])
    elif program.removeprefix("./").startswith(("scripts/", "examples/")):
        problem = None if (ROOT / program).is_file() else "there is no such script"
    elif program not in OTHER_PROGRAMS:
        problem = "unknown program"
    return problem


def problem_with_arguments(arguments: list[str]) -> str | None:
    """The same for arguments of the `sc2pool` command."""
    try:
        make_parser().parse_args(arguments)
    except SystemExit as end:
        return "the command does not take that:" if end.code else None
    return None


def problem_with_extras(text: str) -> str | None:
    """The same for arguments of pip."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for named in re.findall(r"(?:sc2pool|\.)\[([a-z,]+)\]", text):
        for extra in named.split(","):
            if extra not in extras["optional-dependencies"]:
                return f"there is no extra {extra}"
    return None


FAILING = """# A page

```python
x = 1
```

```python
class Odd:
    y = x / 0
```

```python
print("never")
```
"""


def test_a_block_that_fails_fails_its_page_at_its_own_line(tmp_path: Path, standin_dir: Path):
    page = tmp_path / "failing.md"
    page.write_text(FAILING)
    done = run_page(page, tmp_path, standin_dir)
    assert done.returncode == 1
    assert 'failing.md.py", line 9, in Odd' in done.stderr
    assert done.stdout.splitlines() == [f"{ENDED} 5"]


def test_a_page_that_exits_early_lacks_blocks(tmp_path: Path, standin_dir: Path):
    page = tmp_path / "leaving.md"
    page.write_text("```python\nraise SystemExit(0)\n```\n")
    done = run_page(page, tmp_path, standin_dir)
    assert done.returncode == 0
    assert done.stdout.splitlines() != program(page.read_text())[1]


@pytest.mark.parametrize(
    ("page", "error"),
    [
        ("```\nx\n```\n", "line 1: a code block in 'no language'"),
        ("\n```pycon\nx\n```\n", "line 2: a code block in 'pycon'"),
        ("```python\nx\n", "line 1: a code block that does not end"),
    ],
)
def test_no_block_escapes_by_its_looks(page: str, error: str):
    with pytest.raises(ValueError, match=error):
        blocks(page)


@pytest.mark.parametrize(
    "command",
    [
        "sc2pool nosuch",
        "sc2pool bench --games 3",
        "./scripts/train --n 0",
        "./scripts/nosuch",
        "python scripts/nosuch.py",
        "python -m examples.nosuch",
        "nosuch --help",
        "pip install 'sc2pool[nosuch]'",
    ],
)
def test_a_wrong_command_is_found(command: str):
    (words,) = commands(f"```sh\n{command}  # a remark\n```\n")
    assert problem_with(words) is not None


def test_commands_in_the_text_are_found():
    assert list(commands("Say `sc2pool top --once`, see `sc2pool.fault`.")) == [
        ["sc2pool", "top", "--once"]
    ]
