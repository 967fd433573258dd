"""The facts that measurements settle, and a measurement that fails in a way of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sc2pool.cli.doctor import full
from sc2pool.cli.doctor.checks.ends import AwaitedEnd, Stop
from sc2pool.cli.doctor.checks.resets import Beginning
from sc2pool.cli.doctor.findings import Findings, Grade
from sc2pool.cli.doctor.lab import Lab, Maps
from sc2pool.game.program.installation import Installation
from sc2pool.game.program.settled import Settled

CHECKS = {check.name: check for part in full.PARTS for check in part.checks}
BEFORE = Settled(restart_faithful=True, after_stop="freeze", measured="2026-01-01")
ALIKE = [
    Beginning(restarted=restarted, own_race="Zerg", enemy_race="Zerg", units="12", growth=3)
    for restarted in (False, True)
]
OTHERS = [ALIKE[0], Beginning(**ALIKE[1] | {"units": "11"})]


def awaited(after_s: float | None) -> AwaitedEnd:
    return AwaitedEnd(
        way="a surrender", ahead=5, after_s=after_s, loop=9, status="ended", told=True, refused=""
    )


def stop(made_up: float) -> Stop:
    return Stop(stopped_s=1.0, missed=20.0, made_up=made_up)


@pytest.mark.parametrize(
    ("measured", "facts"),
    [
        ({}, {}),
        ({"D05 restart restores": (900, 1, 9000, ())}, {"restart_faithful": True}),
        ({"D05 restart restores": (900, 0, 9000, ("x",))}, {"restart_faithful": False}),
        # No field was used up, so nothing is proven.
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
    settled = full.settled_by(findings, Settled())
    assert settled == Settled(**facts, measured=settled.measured)
    assert bool(settled.measured) == bool(facts)


def test_facts_that_were_not_measured_stay() -> None:
    findings = Findings()
    assert full.settled_by(findings, BEFORE) == BEFORE
    findings.note_failure(CHECKS["D05 restart restores"], "the game ended")
    findings.note(CHECKS["D16 stops"], [stop(20.0)])
    settled = full.settled_by(findings, BEFORE)
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
        full.Part((CHECKS["D25 limits"],), expect_units, 10.0),
        full.Part((CHECKS["D26 ids"],), expect_nothing, 10.0),
    )
    monkeypatch.setattr(full, "PARTS", parts)
    installation = Installation(tmp_path, tmp_path / "SC2_x64", 75689, None, None)
    findings = Findings()
    asyncio.run(full.measure(Lab(installation, Maps(None, None, None), findings), {"D25", "D26"}))
    found = findings.in_order([CHECKS["D25 limits"], CHECKS["D26 ids"]], "not made")
    assert [finding.judgement.outcome for finding in found] == [Grade.DIFFERS, Grade.OK]
    assert "IndexError" in found[0].judgement.figure
    assert "in expect_units" in found[0].judgement.figure
