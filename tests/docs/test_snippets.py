"""Every code block of the README and of `docs/` works: all Python runs, and all commands parse.

A page's Python blocks are one program, with the page's line numbers, so a failure names the page's
line. The program runs as in a user's clean shell without StarCraft II, so SC2PATH is set only if a
command of the page sets it. pytest runs the two files of `docs/test-a-bot.md`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from sc2pool.cli.parser import make_parser
from sc2pool.cli.training.algorithms import read_hyperparameters
from sc2pool.cli.training.model import check_arguments
from sc2pool.game.program.installation import write_stand_in
from sc2pool.tasks.registry import BUILT_IN

from .pages import ENDED, PYTHON, YAML, Block, blocks, commands, find_pages, libraries, program

ROOT = Path(__file__).parents[2]
PAGES = find_pages(ROOT)
README = ROOT / "README.md"
WITH_PYTHON = [page for page in PAGES if page != README and program(page.read_text())[1]]
WITH_LIBRARIES = [
    (page, library) for page in PAGES for library in sorted(libraries(page.read_text()))
]
PAGE_TIMEOUT_S = 1500.0
PYTHONS = {"python", ".venv/bin/python"}
OTHER_PROGRAMS = {
    "mkdocs",
    "tensorboard",
    "unzip",
    "mkdir",
    "apt-get",
    "my_python_sc2_bot.py",
}
"""Programs whose arguments are not checked."""
STANDIN_PATH = "$(sc2pool standin path)"

of_the_stand_in = pytest.mark.standin("snippets are run with the figures of its rules")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def sets_game(page: Path) -> bool:
    """True if a command of the page sets SC2PATH to the stand-in's folder."""
    return any(f"SC2PATH={STANDIN_PATH}" in words for words in commands(page.read_text()))


def run_page(
    page: Path, folder: Path, library: str | None = None, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    """Run all Python of a page; if a library is given, only the blocks that import it."""
    file = folder / f"{page.stem}.md.py"
    clean = {name: value for name, value in os.environ.items() if name != "SC2PATH"}
    game = {"SC2PATH": str(write_stand_in())} if sets_game(page) else {}
    file.write_text(program(page.read_text(), library)[0])
    # Ray keeps sockets in its folder, and the path of a socket has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as ray:
        return subprocess.run(
            [python, "-W", "error::SyntaxWarning", str(file)],
            cwd=folder,
            env={
                **clean,
                **game,
                "HOME": str(folder),  # the user's home folder has no StarCraft II
                "PYTHONPATH": str(ROOT),
                "OMP_NUM_THREADS": "1",  # the games need the CPU cores
                "RAY_TMPDIR": ray,
                "RAY_AUTH_MODE": "disabled",
                "RAY_USAGE_STATS_ENABLED": "0",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PAGE_TIMEOUT_S,
            check=False,
        )


@of_the_stand_in
@pytest.mark.timeout(PAGE_TIMEOUT_S + 30)
@pytest.mark.parametrize("page", WITH_PYTHON, ids=name_of)
def test_all_python_of_the_page_runs(page: Path, tmp_path: Path):
    done = run_page(page, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    ran = [line for line in done.stdout.splitlines() if line.startswith(ENDED)]
    assert ran == program(page.read_text())[1]


@of_the_stand_in
@pytest.mark.timeout(PAGE_TIMEOUT_S + 30)
@pytest.mark.parametrize(
    "block",
    [block for block in blocks(README.read_text()) if block.language == PYTHON],
    ids=lambda block: f"line {block.line}",
)
def test_each_python_block_of_the_readme_runs_alone(block: Block, tmp_path: Path):
    """Each block must run if copied alone; if it trains, it must limit torch's threads itself."""
    assert ("learn(" in block.code) <= ("torch.set_num_threads(1)" in block.code)
    page = tmp_path / "alone.md"
    page.write_text(f"```python\n{block.code}```\n")
    done = run_page(page, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    ran = [line for line in done.stdout.splitlines() if line.startswith(ENDED)]
    assert ran == program(page.read_text())[1]


@of_the_stand_in
@pytest.mark.timeout(PAGE_TIMEOUT_S + 30)
@pytest.mark.parametrize(
    ("page", "library"), WITH_LIBRARIES, ids=lambda one: getattr(one, "name", one)
)
def test_all_python_of_the_page_for_a_library_runs(
    page: Path, library: str, tmp_path: Path, python_with: Callable[[str], str]
):
    done = run_page(page, tmp_path, library, python_with(library))
    assert done.returncode == 0, done.stdout + done.stderr
    ran = [line for line in done.stdout.splitlines() if line.startswith(ENDED)]
    assert ran == program(page.read_text(), library)[1]


@of_the_stand_in
def test_a_page_that_plays_under_python_sc2_says_how():
    under_python_sc2 = {
        page.name for page in WITH_PYTHON if "run_game(" in program(page.read_text())[0]
    }
    assert under_python_sc2 == {page.name for page in WITH_PYTHON if sets_game(page)}
    assert under_python_sc2


@of_the_stand_in
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_all_commands_of_the_page_can_be_given(page: Path, capsys: pytest.CaptureFixture[str]):
    for words in commands(page.read_text()):
        problem = problem_with(words)
        assert problem is None, f"{' '.join(words)}: {problem} {capsys.readouterr().err}"


@of_the_stand_in
def test_hyperparameters_of_the_documentation_can_be_given(tmp_path: Path):
    files = [
        block.code for page in PAGES for block in blocks(page.read_text()) if block.language == YAML
    ]
    assert files
    for content in files:
        file = tmp_path / "given.yml"
        file.write_text(content)
        for task in (*BUILT_IN, "of_my_own:Walk"):
            check_arguments("ppo", read_hyperparameters("ppo", task, file))


def problem_with(words: list[str]) -> str | None:
    """The error in a command; None if the command is correct."""
    while words and (setting := re.fullmatch(r"[A-Z0-9_]+=(.*)", words[0])):
        inner = re.fullmatch(r"\$\((.*)\)", setting[1])
        problem = problem_with(inner[1].split()) if inner else None
        if problem is not None:
            return problem
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
    """The error in arguments of the `sc2pool` command; None if there is none."""
    try:
        make_parser().parse_args(arguments)
    except SystemExit as end:
        return "the command does not take that:" if end.code else None
    return None


def problem_with_extras(text: str) -> str | None:
    """The error in the extras that a pip command names; None if all of them exist."""
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


@of_the_stand_in
def test_a_block_that_fails_fails_its_page_at_its_own_line(tmp_path: Path):
    page = tmp_path / "failing.md"
    page.write_text(FAILING)
    done = run_page(page, tmp_path)
    assert done.returncode == 1
    assert 'failing.md.py", line 9, in Odd' in done.stderr
    assert done.stdout.splitlines() == [f"{ENDED} 5"]


@of_the_stand_in
def test_a_page_that_exits_early_lacks_blocks(tmp_path: Path):
    page = tmp_path / "leaving.md"
    page.write_text("```python\nraise SystemExit(0)\n```\n")
    done = run_page(page, tmp_path)
    assert done.returncode == 0
    assert done.stdout.splitlines() != program(page.read_text())[1]


@of_the_stand_in
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


@of_the_stand_in
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
        'SC2PATH="$(sc2pool standin nosuch)" python my_python_sc2_bot.py',
        'pip install "sc2pool[nosuch]"',
    ],
)
def test_a_wrong_command_is_found(command: str):
    (words,) = commands(f"```sh\n{command}  # a remark\n```\n")
    assert problem_with(words) is not None


@of_the_stand_in
def test_commands_in_the_text_are_found():
    assert list(commands("Say `sc2pool top --once`, see `sc2pool.fault`.")) == [
        ["sc2pool", "top", "--once"]
    ]


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
