"""Runs `sc2pool doctor --full` on a game without reported faults and on a game with all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from sc2pool.cli.main import main
from sc2pool.game.program.builds import settled_on
from sc2pool.game.program.installation import find_installation

STOPS = {"stop and go on", "D16 stops", "D16 match stops"}
"""These checks report a difference on both games: both later play the loops missed in a stop."""
TIMES = {"launch", "launch again", "D12 launches at once", "D24 speed"}
"""The checks that may fail on a busy machine."""
OF_ALL = {
    "D01 awaited end",
    "D02 polled end",
    "D03 match end",
    "D03 match results",
    "D04 stepped end",
    "D05 restart restores",
    "D08 many resets",
    "D10 closed socket",
    "D11 ends",
    "D18 warnings",
    "D21 installed maps",
    "D21 waves",
    "D22 odd maps",
}
"""The checks that must find a difference on the game with all reported behaviours."""


def run(game: Path, out: Path) -> dict[str, Any]:
    """Make all measurements of the doctor; returns its report."""
    assert main(["doctor", "--full", "--game", str(game), "--out", str(out)]) == 0
    (report,) = out.glob("doctor-Base*.json")
    return json.loads(report.read_text())


def differing(report: dict[str, Any]) -> set[str]:
    return {check["name"] for check in report["checks"] if check["outcome"] == "differs"}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test has its own cache, so other pools do not use the facts that the test settles."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_kind_game(tempered: Callable[[str], Path], tmp_path: Path) -> None:
    report = run(tempered("kind"), tmp_path / "out")
    assert differing(report) - TIMES == STOPS
    assert not [c["name"] for c in report["checks"] if c["outcome"] == "not possible"]
    facts = asdict(settled_on(find_installation(tempered("kind"))))
    assert facts.pop("measured")
    assert facts == {
        "restart_faithful": True,
        "restart_with_computer": True,
        "bursts_in_matches": True,
        "silent_end": False,
        "after_stop": "catch-up",
    }


def test_a_game_with_every_reported_behaviour(
    tempered: Callable[[str], Path], tmp_path: Path
) -> None:
    report = run(tempered("all"), tmp_path / "out")
    assert differing(report) >= OF_ALL
    assert not [c["name"] for c in report["checks"] if c["outcome"] == "not possible"]
    facts = settled_on(find_installation(tempered("all")))
    assert facts.restart_faithful is False
    assert facts.silent_end is True
    assert facts.after_stop == "catch-up"
