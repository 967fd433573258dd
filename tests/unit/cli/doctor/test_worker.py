"""The child that the doctor tries."""

from __future__ import annotations

from typing import Any

import pytest

from sc2pool.cli.doctor import worker
from sc2pool.cli.doctor.checks import machine
from sc2pool.cli.doctor.findings import Findings, Grade


def test_a_child_that_lives_on_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    start, children = worker.start_follower, []

    def immortal(*arguments: Any, **keywords: Any) -> Any:
        child = start(*arguments, **keywords)
        children.append(child.process)
        for one in (child, child.process):
            monkeypatch.setattr(one, "kill", lambda: None)
        return child

    monkeypatch.setattr(worker, "start_follower", immortal)
    monkeypatch.setattr(worker, "_ENDS_WITHIN_S", 0.1)
    findings = Findings()
    try:
        worker.probe_worker(findings)
    finally:
        monkeypatch.undo()
        for process in children:
            process.kill()
            process.wait()
    (finding,) = findings.in_order([machine.worker], "")
    assert finding.judgement.outcome is Grade.FAILED
    assert finding.judgement.figure == "it lives on after it was killed"
