"""The pages for developers, and others, name files and commands that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .pages import commands

ROOT = Path(__file__).parents[2]
PAGES = ("CONTRIBUTING.md", "docs/architecture.md", "tests/README.md")
"""For developers."""
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text()
STARTS = (
    ROOT,
    ROOT / "sc2pool",
    ROOT / "sc2pool/pool/instances",
    ROOT / "tests/unit/rules",
    ROOT / "scripts/chaos/attacks",
)
"""Folders that the page's paths are relative to."""


def exists(path: str) -> bool:
    return any((start / path).exists() for start in STARTS)


@pytest.mark.parametrize("name", PAGES)
def test_every_file_that_a_page_names_exists(name: str) -> None:
    page, folder = (ROOT / name).read_text(), (ROOT / name).parent
    named = set(re.findall(r"`([\w./-]+(?:\.py|\.md|\.yml|/))`", page))
    assert sorted(path for path in named if not exists(path)) == []
    linked = set(re.findall(r"\]\((?!http)([^)#]+)", page))
    assert sorted(path for path in linked if not (folder / path).exists()) == []


def test_every_file_on_the_way_of_a_step_exists() -> None:
    start, end = "## How a step travels", "## The compiled step path"
    drawing = ARCHITECTURE[ARCHITECTURE.index(start) : ARCHITECTURE.index(end)]
    modules = re.findall(r"\b((?:pool|envs|game|tasks|protocol)/[\w/]+)(?= )", drawing)
    assert len(modules) > 15
    assert sorted(path for path in modules if not exists(f"{path}.py")) == []


def test_every_room_is_in_the_architecture() -> None:
    start, end = "## Rooms", "## How a step travels"
    layout = ARCHITECTURE[ARCHITECTURE.index(start) : ARCHITECTURE.index(end)]
    rooms = {path.parent.name for path in (ROOT / "sc2pool").glob("*/__init__.py")}
    rooms |= {path.parent.name for path in (ROOT / "sc2pool/pool").glob("*/__init__.py")}
    assert rooms <= set(re.findall(r"^ +(\w+)/ ", layout, re.MULTILINE))


def test_the_paths_in_their_commands_exist() -> None:
    pages = [(ROOT / name).read_text() for name in PAGES]
    words = [word for page in pages for command in commands(page) for word in command]
    paths = [word for word in words if re.match(r"(\./)?(scripts|tests)/", word)]
    assert len(paths) > 3
    assert [path for path in paths if not exists(path)] == []


@pytest.mark.parametrize(("page", "at_least"), [("faults.md", 20), ("security.md", 10)])
def test_the_tests_that_a_page_names_exist(page: str, at_least: int) -> None:
    named = set(re.findall(r"`(tests/[\w/]+\.py)`", (ROOT / "docs" / page).read_text()))
    assert len(named) > at_least
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_the_files_that_the_stand_ins_page_names_exist() -> None:
    room = ROOT / "sc2standin"
    page = (room / "README.md").read_text()
    named = set(re.findall(r"`([a-z_]\w*(?:/\w+)+\.[a-z]+)`", page))
    assert len(named) > 15
    assert [name for name in sorted(named) if not ((room / name).exists() or exists(name))] == []
