"""The report: whole, as wide as asked, and the same for programs."""

from __future__ import annotations

import json

import pytest

from sc2pool.cli.doctor.checks import all_checks, game, machine
from sc2pool.cli.doctor.findings import (
    Finding,
    Findings,
    Grade,
    as_json,
    as_text,
    exit_status,
)
from sc2pool.errors import FaultKind

LOG = "the game ended: exit code 7; its log ends with:\nno graphics card\ngood bye"


def in_order(findings: Findings) -> list[Finding]:
    """A finding for each check; those not measured had no game to look at."""
    return findings.in_order(all_checks(["MoveToBeacon"]), "there is no game to look at")


@pytest.fixture
def broken() -> Findings:
    """The findings for a game that ends while it starts."""
    findings = Findings()
    findings.note(machine.cores, 2, 8)
    findings.note_failure(game.launch, LOG, FaultKind.LAUNCH_FAILED)
    return findings


def test_failures_come_last_with_the_way_to_fix_them(broken: Findings) -> None:
    text = as_text(in_order(broken), 100)
    assert [line for line in text.splitlines() if line.isupper()] == [
        "INSTALLATION",
        "MACHINE",
        "TIMES AND MEMORY OF THE GAME",
        "BEHAVIOUR OF THE GAME",
        "WHAT IS WRONG, AND HOW TO FIX IT",
    ]
    above, _, below = text.partition("WHAT IS WRONG, AND HOW TO FIX IT")
    assert " 2 of 8" in above
    assert "its log ends with: (see below)" in above
    assert "no graphics card" not in above
    assert "1. launch: the game ended" in below
    assert "   | no graphics card\n   | good bye\n   → the game ended by itself" in below
    assert text.splitlines()[-1].startswith("sc2pool does not work with this game")
    assert exit_status(in_order(broken)) == 1


def test_checks_that_were_not_possible_share_their_reason() -> None:
    text = as_text(in_order(Findings()), 300)
    assert "not possible  launch, launch again, create+join, " in text
    assert text.count("there is no game to look at") == 4  # once for each part


def test_differences_are_explained_and_no_failures() -> None:
    findings = Findings()
    findings.note(game.restart_variety, 5, 1)
    different = in_order(findings)
    text = as_text(different, 200)
    assert "→ every episode begins alike: give seed=…" in text
    assert "WHAT IS WRONG" not in text
    assert text.splitlines()[-1] == (
        f"sc2pool works with this game: 1 differs, {len(different) - 1} not possible."
    )
    assert exit_status(different) == 0


@pytest.mark.parametrize("width", [72, 80, 120])
def test_no_line_is_wider_than_asked(width: int, broken: Findings) -> None:
    broken.note(game.restart_variety, 5, 1)
    assert max(map(len, as_text(in_order(broken), width).splitlines())) <= width


def test_json_says_the_same(broken: Findings) -> None:
    numpy = machine.Package(name="numpy", version="2.1.0", least="1.26")
    broken.note(machine.python, (3, 12, 1), [numpy])
    broken.note(game.restart, 2, 0.5, 0.75, 0.9, longest_s=1.0)
    report = json.loads(as_json(in_order(broken)))
    assert report["works"] is False
    found = {check["name"]: check for check in report["checks"]}
    assert list(found) == [finding.check.name for finding in in_order(broken)]
    fields = "name part purpose outcome figure advice measured"
    assert list(found["launch"]) == fields.split()
    assert found["launch"]["outcome"] == "failed"
    assert found["launch"]["figure"] == LOG
    assert found["launch"]["measured"] == {"detail": LOG, "kind": "launch-failed"}
    assert found["restart"]["measured"] == {
        "n": 2,
        "first_s": 0.5,
        "p50_s": 0.75,
        "p95_s": 0.9,
        "longest_s": 1.0,
    }
    assert found["python"]["measured"] == {"version": [3, 12, 1], "packages": [numpy]}
    assert found["kill"]["measured"] == {"reason": "there is no game to look at"}
    assert {check["outcome"] for check in found.values()} <= set(Grade)
