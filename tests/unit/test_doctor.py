"""Tests `sc2pool doctor`: the child process, the comparison of runs, measurements, and report."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.doctor import checks, diagnosis, worker_check
from sc2pool.doctor.diagnosis import all_checks
from sc2pool.doctor.findings import Finding, Findings, Grade, as_json, as_text, works
from sc2pool.doctor.lab import Lab
from sc2pool.doctor.stepping import beginning, first_difference
from sc2pool.errors import FaultKind
from sc2pool.game.program.builds import Settled
from sc2pool.game.program.installation import Installation
from tests.unit.doctor.test_checks import awaited, begun, stop

# ---- the child process ---------------------------------------------------------------------------


def test_a_child_that_lives_on_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    start, children = worker_check.start_follower, []

    def immortal(*arguments: Any, **keywords: Any) -> Any:
        child = start(*arguments, **keywords)
        children.append(child.process)
        for one in (child, child.process):
            monkeypatch.setattr(one, "kill", lambda: None)
        return child

    monkeypatch.setattr(worker_check, "start_follower", immortal)
    monkeypatch.setattr(worker_check, "_ENDS_WITHIN_S", 0.1)
    findings = Findings()
    try:
        worker_check.probe_worker(findings)
    finally:
        monkeypatch.undo()
        for process in children:
            process.kill()
            process.wait()
    (finding,) = findings.in_order([checks.worker], "")
    assert finding.judgement.outcome is Grade.FAILED
    assert finding.judgement.figure == "it lives on after it was killed"


# ---- the comparison of two runs ------------------------------------------------------------------


def seen(loop: int, *units: tuple[int, float], target: int = 0) -> sc_pb.Observation:
    """An observation of units, given as pairs of tag and x; the first unit may have a target."""
    observation = sc_pb.Observation(game_loop=loop)
    for tag, x in units:
        unit = observation.raw_data.units.add(tag=tag)
        unit.pos.x = x
    if target:
        observation.raw_data.units[0].engaged_target_tag = target
    return observation


def test_other_tags_are_no_difference() -> None:
    ours = [seen(0, (7, 1.0), (9, 2.0)), seen(8, (9, 2.0), (7, 1.0), target=7)]
    theirs = [seen(0, (70, 1.0), (5, 2.0)), seen(8, (5, 2.0), (70, 1.0), target=70)]
    assert first_difference(ours, theirs) == first_difference(ours, ours) == ""
    assert first_difference([], []) == ""
    assert beginning(ours[0]) == beginning(theirs[0])


FIRST, TWO = seen(0, (7, 1.0)), ((7, 1.0), (9, 1.0))


@pytest.mark.parametrize(
    ("ours", "theirs", "told"),
    [
        (seen(8, *TWO, target=7), seen(8, *TWO, target=9), "engaged_target_tag: 1 and 2"),
        (seen(8, (7, 2.0)), seen(8, (7, 2.5)), "pos.x: 2.0 and 2.5"),
    ],
    ids=["another unit in its place", "another place"],
)
def test_the_first_difference_is_told(ours: Any, theirs: Any, told: str) -> None:
    later = seen(16, (7, 3.0)), seen(16, (7, 9.0))
    found = first_difference([FIRST, ours, later[0]], [FIRST, theirs, later[1]])
    assert found == f"observation 1, raw_data.units[0].{told}"
    assert beginning(ours) != beginning(theirs)


def test_something_more_on_one_side() -> None:
    more = seen(0, *TWO)
    told = "observation 0, raw_data.units[1] on one side, game_loop on the other"
    assert first_difference([more], [FIRST]) == told
    assert first_difference([more], [more, FIRST]) == "1 observations on one side, 2 on the other"


def test_bytes_are_told_by_their_length() -> None:
    ours, theirs = seen(0), seen(0)
    ours.raw_data.map_state.creep.data = b"\0" * 100
    theirs.raw_data.map_state.creep.data = b"\1" * 100
    assert "creep.data: 100 bytes and 100 bytes" in first_difference([ours], [theirs])


# ---- measurements --------------------------------------------------------------------------------


CHECKS = {check.name: check for part in diagnosis.PARTS for check in part.checks}
BEFORE = Settled(restart_faithful=True, after_stop="freeze", measured="2026-01-01")
ALIKE = [begun(restarted=False), begun()]
OTHERS = [begun(restarted=False), begun(units="11")]


@pytest.mark.parametrize(
    ("measured", "facts"),
    [
        ({}, {}),
        ({"D05 restart restores": (900, 1, 9000, ())}, {"restart_faithful": True}),
        ({"D05 restart restores": (900, 0, 9000, ("x",))}, {"restart_faithful": False}),
        # No mineral field was used up, so nothing about restarts is proven.
        ({"D05 restart restores": (90, 0, 9000, ())}, {}),
        ({"D06 computer restarts": (ALIKE,)}, {}),
        (
            {"D06 computer restarts": (ALIKE,), "D07 random race": (ALIKE,)},
            {"restart_with_computer": True},
        ),
        ({"D06 computer restarts": (OTHERS,)}, {"restart_with_computer": False}),
        ({"D09 match bursts": (90, "", "", 9)}, {"bursts_in_matches": True}),
        ({"D09 match bursts": (90, "", "host: x", 9)}, {"bursts_in_matches": False}),
        ({"D09 match bursts": (90, "host: x", "", 9)}, {}),
        ({"D01 awaited end": ([awaited(0.1)], 10.0)}, {"silent_end": False}),
        ({"D01 awaited end": ([awaited(0.1), awaited(None)], 10.0)}, {"silent_end": True}),
        ({"D16 stops": ([stop(0.0)],)}, {"after_stop": "freeze"}),
        (
            {"D16 stops": ([stop(0.0)],), "D16 match stops": ([stop(20.0)],)},
            {"after_stop": "in part"},
        ),
    ],
)
def test_what_is_settled(measured: dict[str, Any], facts: dict[str, Any]) -> None:
    findings = Findings()
    for name, measurement in measured.items():
        findings.note(CHECKS[name], *measurement)
    settled = diagnosis.settled_by(findings, Settled())
    assert settled == Settled(**facts, measured=settled.measured)
    assert bool(settled.measured) == bool(facts)


def test_facts_that_were_not_measured_stay() -> None:
    findings = Findings()
    assert diagnosis.settled_by(findings, BEFORE) == BEFORE
    findings.note_failure(CHECKS["D05 restart restores"], "the game ended")
    findings.note(CHECKS["D16 stops"], [stop(20.0)])
    settled = diagnosis.settled_by(findings, BEFORE)
    assert (settled.restart_faithful, settled.after_stop) == (True, "catch-up")
    assert settled.measured > BEFORE.measured


def test_an_answer_that_nobody_expects_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def expect_units(_lab: Lab) -> None:
        raise IndexError("list index out of range")

    async def expect_nothing(lab: Lab) -> None:
        lab.findings.note(CHECKS["D26 ids"], {"0": 0}, {})

    parts = (
        diagnosis.Part((CHECKS["D25 limits"],), expect_units, 10.0),
        diagnosis.Part((CHECKS["D26 ids"],), expect_nothing, 10.0),
    )
    monkeypatch.setattr(diagnosis, "PARTS", parts)
    installation = Installation(tmp_path, tmp_path / "SC2_x64", 75689, None, None)
    findings = Findings()
    asyncio.run(diagnosis.measure(Lab(installation, None, findings), {"D25", "D26"}))
    found = findings.in_order([CHECKS["D25 limits"], CHECKS["D26 ids"]], "not made")
    assert [finding.judgement.outcome for finding in found] == [Grade.DIFFERS, Grade.OK]
    assert "IndexError" in found[0].judgement.figure
    assert "in expect_units" in found[0].judgement.figure


# ---- the report ----------------------------------------------------------------------------------


LOG = "the game ended: exit code 7; its log ends with:\nno graphics card\ngood bye"


def in_order(findings: Findings) -> list[Finding]:
    """A finding for each check; for a check without a measurement it says that there is no game."""
    return findings.in_order(all_checks(["MoveToBeacon"]), "there is no game to look at")


@pytest.fixture
def broken() -> Findings:
    """The findings for a game that ends while it starts."""
    findings = Findings()
    findings.note(checks.cores, 2, 8)
    findings.note_failure(checks.launch, LOG, FaultKind.LAUNCH_FAILED)
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
    assert not works(in_order(broken))


def test_checks_that_were_not_possible_share_their_reason() -> None:
    text = as_text(in_order(Findings()), 300)
    assert "not possible  launch, launch again, create+join, " in text
    assert text.count("there is no game to look at") == 4  # once for each part of the report


def test_differences_are_explained_and_no_failures() -> None:
    findings = Findings()
    findings.note(checks.restart_variety, 5, 1)
    different = in_order(findings)
    text = as_text(different, 200)
    assert "→ every episode begins alike: give seed=…" in text
    assert "WHAT IS WRONG" not in text
    assert text.splitlines()[-1] == (
        f"sc2pool works with this game: 1 differs, {len(different) - 1} not possible."
    )
    assert works(different)


@pytest.mark.parametrize("width", [72, 80, 120])
def test_no_line_is_wider_than_asked(width: int, broken: Findings) -> None:
    broken.note(checks.restart_variety, 5, 1)
    assert max(map(len, as_text(in_order(broken), width).splitlines())) <= width


def test_json_says_the_same(broken: Findings) -> None:
    numpy = checks.Package(name="numpy", version="2.1.0", least="1.26")
    broken.note(checks.python, (3, 12, 1), [numpy])
    broken.note(checks.restart, 2, 0.5, 0.75, 0.9, longest_s=1.0)
    settled = Settled(restart_faithful=False, after_stop="freeze", measured="2026-11-30")
    broken.note(checks.settled, settled)
    broken.note(checks.game, Path("/sc2"), Path("/sc2/SC2_x64"), 1, "SC2PATH")
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
    assert found["settled"]["measured"] == {"facts": asdict(settled)}
    assert found["game"]["measured"]["executable"] == "/sc2/SC2_x64"
    assert found["kill"]["measured"] == {"reason": "there is no game to look at"}
    assert {check["outcome"] for check in found.values()} <= set(Grade)
