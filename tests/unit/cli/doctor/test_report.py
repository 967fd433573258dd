"""The report: whole, as wide as asked, and the same for programs."""

from __future__ import annotations

import json

import pytest

from sc2pool.cli.doctor.checks import Finding, all_checks, judge
from sc2pool.cli.doctor.measurements import Cores, Durations, Variety
from sc2pool.cli.doctor.report import as_json, as_text, exit_status
from sc2pool.cli.doctor.verdict import Broke, Outcome, Unknown
from sc2pool.errors import FaultKind

LOG = "the game ended: exit code 7; its log ends with:\nno graphics card\ngood bye"


def findings(**measured: object) -> list[Finding]:
    """All checks, with these measurements; the rest had no game to look at."""
    checks = all_checks(["MoveToBeacon"])
    rest = {check.name: Unknown("there is no game to look at") for check in checks}
    return judge(checks, rest | measured)


def test_what_is_wrong_comes_last_with_its_way_to_be_mended() -> None:
    broken = findings(cores=Cores(2, 8), launch=Broke(LOG, FaultKind.LAUNCH_FAILED))
    text = as_text(broken, 100)
    above, _, below = text.partition("WHAT IS WRONG, AND HOW TO MEND IT")
    assert "its log ends with: (see below)" in above
    assert "no graphics card" not in above
    assert "1. launch: the game ended" in below
    assert "   | no graphics card\n   | good bye\n   → the game ended by itself" in below
    assert text.splitlines()[-1].startswith("sc2pool does not work with this game")
    assert exit_status(broken) == 1


def test_checks_that_were_not_possible_share_their_reason() -> None:
    text = as_text(findings(), 300)
    assert "not possible  launch, launch again, create+join, " in text
    assert text.count("there is no game to look at") == 4  # once for each part


def test_what_differs_is_explained_and_no_failure() -> None:
    different = findings(**{"restart variety": Variety(5, 1)})
    text = as_text(different, 200)
    assert "→ every episode begins alike: give seed=…" in text
    assert "WHAT IS WRONG" not in text
    assert text.splitlines()[-1] == (
        f"sc2pool works with this game: 1 differs, {len(different) - 1} not possible."
    )
    assert exit_status(different) == 0


@pytest.mark.parametrize("width", [72, 80, 120])
def test_no_line_is_wider_than_asked(width: int) -> None:
    broken = findings(
        cores=Cores(2, 8),
        launch=Broke(LOG, FaultKind.LAUNCH_FAILED),
        **{"restart variety": Variety(5, 1)},
    )
    assert max(map(len, as_text(broken, width).splitlines())) <= width


def test_json_says_the_same() -> None:
    broken = findings(launch=Broke(LOG, FaultKind.LAUNCH_FAILED), restart=Durations.of([0.5, 1.0]))
    report = json.loads(as_json(broken))
    assert report["works"] is False
    checks = {check["name"]: check for check in report["checks"]}
    assert list(checks) == [finding.check.name for finding in broken]
    assert checks["launch"]["outcome"] == "failed"
    assert checks["launch"]["figure"] == LOG
    assert checks["launch"]["measured"]["kind"] == "launch-failed"
    assert checks["restart"]["measured"] == {
        "n": 2,
        "first_s": 0.5,
        "p50_s": 0.5,
        "p95_s": 1.0,
        "longest_s": 1.0,
    }
    assert {check["outcome"] for check in checks.values()} <= set(Outcome)
