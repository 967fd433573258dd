"""Which tempers a game has: the table of the known ones, names and values, the start script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import sc2standin
from sc2standin.install import MARKER
from sc2standin.tempers import GROUPS, TEMPERS, Temper
from tests.standin.conftest import launcher

README = Path(sc2standin.__file__).parent / "README.md"


def test_the_readme_has_the_same_table():
    lines = README.read_text().split("\n## Tempers\n")[1].split("\n## ")[0].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| `")]
    assert rows == [
        [
            f"`{one.name}[:{one.value}]`" if one.value else f"`{one.name}`",
            one.does,
            one.question,
            one.source,
            one.certainty,
            "yes" if one.hangs else "no",
            one.rarer or "–",
        ]
        for one in TEMPERS
    ]


def test_groups_follow_from_the_table():
    certain = {one.name: one.certainty for one in TEMPERS}
    assert GROUPS["kind"] == ()
    assert set(GROUPS["all"]) == set(certain)
    assert {certain[name] for name in GROUPS["recorded"]} == {"S", "1"}
    assert {certain[name] for name in GROUPS["default"]} <= {"S"}
    assert {"silent-end", "untold-end"} & set(GROUPS["default"]) == set(), "these hang a client"


def test_several_names_groups_and_values():
    assert repr(Temper("kind")) == "Temper()"
    assert repr(Temper("stub-end,untold-end:still,kind")) == "Temper(stub-end, untold-end:still)"
    assert repr(Temper("untold-end:still,untold-end")) == "Temper(untold-end)"
    assert "untold-end:still" in repr(Temper("untold-end:still,all"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("gentle", "no temper 'gentle'; there are silent-end, "),
        ("late-unit", "and the groups kind, default, recorded, all; did you mean late-units?"),
        ("kind,", "no temper ''; there are silent-end, "),
        ("all:3", "no temper 'all:3'; there are silent-end, "),
        ("untold-end:soon", "no temper 'untold-end:soon'; write untold-end:still"),
        ("stub-end:1", "no temper 'stub-end:1'; write stub-end, without a value"),
    ],
)
@pytest.mark.parametrize("installs", [True, False])
def test_an_unknown_choice_is_an_error(text, told, installs, tmp_path):
    what = ["install", str(tmp_path / "game")] if installs else ["-port", "5000"]
    command = [sys.executable, "-m", "sc2standin", *what, "--temper", text]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert told in done.stderr
    if "there are" in told:
        assert ", ".join(GROUPS) in done.stderr
    assert not (tmp_path / "game" / MARKER).exists()


def test_the_start_script_has_the_choice(tempered, tmp_path):
    (executable,) = tempered("stub-end").glob("Versions/Base*/SC2_x64")
    with launcher(tempered("stub-end"), executable, tmp_path) as launch:
        wire = launch().connect()
        wire.start()
        wire.step(1920)
        assert not wire.observe().HasField("raw_data")


def test_without_a_choice_the_start_script_has_none(installation):
    (executable,) = installation.glob("Versions/Base*/SC2_x64")
    assert "--temper" not in executable.read_text()
