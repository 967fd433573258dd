"""Every row of the table of checks is judged, in each of the ways it can go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sc2pool.cli.doctor.checks import all_checks
from sc2pool.cli.doctor.checks.machine import Package, map_check
from sc2pool.cli.doctor.findings import Findings, Grade, Judgement, ProbeFailed
from sc2pool.cli.doctor.stepping import durations
from sc2pool.errors import ConfigError, GameFault

OK, DIFFERS, FAILED = Grade.OK, Grade.DIFFERS, Grade.FAILED
GB, MB = 10**9, 10**6
CHECKS = {check.name: check for check in all_checks(["MoveToBeacon"])}
HERE = Path("/somewhere")
MAP = map_check("MoveToBeacon").name
BELONGS = HERE / "Maps/mini_games/MoveToBeacon.SC2Map"
NUMPY = Package(name="numpy", version="2.1.0", least="1.26")
OLD_NUMPY = Package(name="numpy", version="1.9.5", least="1.26")
NO_PICOWS = Package(name="picows", version=None, least="2")


def pause(at_once: int, after: int) -> tuple[float, ...]:
    """A stop of 2 s, which is 45 loops, and 2 s of running beside it, which is 45 more."""
    return 100, 100 + at_once, 100 + after, 2.0, 2.0, 22.4


CASES: list[tuple[str, tuple[Any, ...], Grade, str]] = [
    ("game", (HERE, HERE / "SC2_x64", 75689, "SC2PATH='x'"), OK, "SC2PATH='x'"),
    (MAP, (BELONGS, BELONGS, ("MoveToBeacon",)), OK, str(BELONGS)),
    (MAP, (None, BELONGS, ("MoveToBeacon",)), FAILED, "needed by MoveToBeacon"),
    (MAP, (None, BELONGS, ()), Grade.NOT_POSSIBLE, "no built-in task needs it"),
    ("python", ((3, 12, 1), [NUMPY]), OK, "Python 3.12.1; numpy 2.1.0"),
    ("python", ((3, 10, 9), [NUMPY]), DIFFERS, "3.10.9"),
    ("python", ((3, 15, 0), [NUMPY]), DIFFERS, "3.15.0"),
    ("python", ((3, 12, 1), [OLD_NUMPY]), FAILED, "1.9.5"),
    ("python", ((3, 12, 1), [NO_PICOWS]), FAILED, "missing"),
    ("step path", ("compiled",), OK, "compiled"),
    ("step path", ("pure Python",), DIFFERS, "pure Python"),
    ("cores", (2, 8), OK, "2 of 8"),
    ("worker", (0.2, True, True, True, True, 0.01), OK, "gone 10.00 ms after its kill"),
    ("worker", (0.2, True, False, False, True, 0.01), DIFFERS, "CPU time and its stopped state"),
    ("worker", (0.2, False, True, True, True, 0.01), FAILED, "not shared"),
    ("worker", (0.2, True, True, True, False, 0.01), FAILED, "while it is stopped"),
    ("worker", (0.2, True, True, True, True, None), FAILED, "lives on"),
    ("memory", (8 * GB, 16 * GB), OK, "8.0 of 16.0 GB free"),
    ("memory", (8 * GB, 16 * GB, 500 * MB), OK, "room for 16 games"),
    ("memory", (GB // 2, 16 * GB), DIFFERS, "0.5 of"),
    ("memory", (GB // 2, 16 * GB, 600 * MB), FAILED, "room for 0 games"),
    ("disk", (HERE, 20 * GB, 40 * GB), OK, "20.0 GB free in /somewhere"),
    ("disk", (HERE, GB // 2, 40 * GB), DIFFERS, "0.5 GB"),
    ("disk", (HERE, 1, 40 * GB), FAILED, "0.0 GB"),
    ("shared memory", (HERE, 64 * MB, 64 * MB), OK, "64 MB of 64 MB"),
    ("shared memory", (HERE, 1 * MB, 64 * MB), DIFFERS, "1 MB of 64 MB"),
    ("open files", (1024, None), OK, "1,024 (hard limit unlimited)"),
    ("open files", (256, 4096), DIFFERS, "256 (hard limit 4,096)"),
    ("processes", (None, None), OK, "unlimited"),
    ("processes", (500, 500), DIFFERS, "500"),
    ("ports", (10000, 32767, 20000), OK, "port 20000 of 10000–32767"),
    ("listener", (True,), OK, "the system reports"),
    ("listener", (False,), DIFFERS, "does not report"),
    ("launch", durations([3.0]), OK, "3.00 s"),
    ("launch", durations([80.0]), DIFFERS, "80.00 s"),
    ("launch again", durations([0.1]), OK, "100 ms"),
    ("create+join", durations([9, 1, 2, 3, 1]), OK, "p50 2.00 s, p95 7.80 s, first 9.00 s"),
    ("create+join", durations([1, 50]), DIFFERS, "longest 50.00 s"),
    ("restart", durations([0.001] * 50), OK, "1.00 ms"),
    ("restart", durations([31.0]), DIFFERS, "31.00 s"),
    ("burst step", durations([0.002, 0.004]), OK, "p50 3.00 ms"),
    ("burst step", durations([0.002, 6.0]), DIFFERS, "longest 6.00 s"),
    ("single step", durations([0.002]), OK, "2.00 ms"),
    ("memory growth", (500 * MB, 520 * MB, 50), OK, "+0.40 MB a reset"),
    ("memory growth", (500 * MB, 1000 * MB, 50), DIFFERS, "+10.00 MB a reset"),
    ("memory growth", (500 * MB, 5000 * MB, 50), FAILED, "5,000 MB"),
    ("kill", (0.05, True), OK, "50 ms, nothing left"),
    ("kill", (3.0, True), DIFFERS, "3.00 s"),
    ("kill", (5.0, False), FAILED, "still there"),
    ("version", ("4.10.0", 75689, 75689), OK, "4.10.0, base build 75689"),
    ("version", ("4.10.0", 75689, 80000), DIFFERS, "75689"),
    ("ready markers", (("Listening on:",), ()), OK, "Listening on:"),
    ("ready markers", ((), ("Listening on:",)), DIFFERS, "not printed"),
    ("proven listener", (True,), OK, "proven"),
    ("proven listener", (False,), DIFFERS, "not proven"),
    ("reply ids", (True,), OK, "yes"),
    ("reply ids", (False,), DIFFERS, "no"),
    ("determinism", (200, ""), OK, "200 observations"),
    ("determinism", (200, "observation 3, x: 1 and 2"), DIFFERS, "observation 3"),
    ("bursts", (100, ""), OK, "100 observations"),
    ("bursts", (100, "observation 3, x: 1 and 2"), FAILED, "observation 3"),
    ("seed", (2, 2), OK, "another beginning"),
    ("seed", (2, 1), DIFFERS, "the same"),
    ("restart and seed", (5, "observation 0, x: 1 and 2"), OK, "no, it goes on"),
    ("restart and seed", (5, ""), DIFFERS, "yes: 5 observations"),
    ("restart variety", (51, 50), OK, "50 different beginning(s) in 51"),
    ("restart variety", (51, 1), DIFFERS, "1 different beginning(s) in 51"),
    ("hard reset", (50, None), OK, "not in 50 restarts"),
    ("hard reset", (50, 3), DIFFERS, "after 3 restarts"),
    ("episode end", (1920, 0, False), OK, "with the result at once"),
    ("episode end", (1920, 1, True), OK, "by a debug command"),
    ("episode end", (1920, 2, False), DIFFERS, "2 observation(s) later"),
    ("episode end", (1920, None, False), DIFFERS, "never came"),
    ("restart after end", (True,), OK, "yes"),
    ("restart after end", (False,), DIFFERS, "created anew"),
    ("exit on request", (True, 0.1, "exit code 0"), OK, "exit code 0"),
    ("exit on request", (False, 5.0, "refused"), DIFFERS, "refused"),
    ("real time", (45, 2.0), OK, "22.5 loops/s"),
    ("real time", (43, 2.0), OK, "21.5 loops/s"),
    ("real time", (40, 2.0), DIFFERS, "20.0 loops/s"),
    ("real time", (0, 2.0), DIFFERS, "0.0 loops/s"),
    ("awaited loop", (10, 30, 30, 0.9), OK, "for loop 30, got loop 30"),
    ("awaited loop", (10, 30, 32, 0.9), OK, "got loop 32"),
    ("awaited loop", (10, 30, 10, 0.0), DIFFERS, "got loop 10"),
    ("awaited loop", (10, 30, 40, 1.3), DIFFERS, "got loop 40"),
    ("stop and go on", pause(0, 45), OK, "no, it goes on where it was"),
    ("stop and go on", (100, 100, 145, 2.0, 2.01, 22.4), OK, "of which 0% were made up"),
    ("stop and go on", pause(45, 90), DIFFERS, "yes: stopped for 2.0 s"),
    ("stop and go on", pause(3, 90), DIFFERS, "yes: stopped for 2.0 s"),
    ("stop and go on", pause(10, 68), DIFFERS, "in part"),
]


def judgement_on(name: str, measurement: tuple[Any, ...]) -> Judgement:
    findings = Findings()
    findings.note(CHECKS[name], *measurement)
    (finding,) = findings.in_order([CHECKS[name]], "")
    assert tuple(finding.measured.values())[: len(measurement)] == measurement
    return finding.judgement


@pytest.mark.parametrize(("name", "measurement", "outcome", "figure"), CASES)
def test_a_measurement(name, measurement, outcome, figure):
    judgement = judgement_on(name, measurement)
    assert judgement.outcome is outcome
    assert figure in judgement.figure
    # If something is not as expected, the advice says what that means or what to do.
    assert bool(judgement.advice) == (outcome in (DIFFERS, FAILED))


def test_every_check_is_among_the_cases():
    assert list(CHECKS) == list(dict.fromkeys(name for name, *_ in CASES))


def test_checks_without_a_measurement_are_not_possible():
    findings = Findings()
    findings.note_unknown(CHECKS["seed"], "too late")
    found = {f.check.name: f.judgement for f in findings.in_order(list(CHECKS.values()), "no game")}
    assert list(found) == list(CHECKS)
    assert found.pop("seed") == (Grade.NOT_POSSIBLE, "too late", "")
    assert set(found.values()) == {(Grade.NOT_POSSIBLE, "no game", "")}


@pytest.mark.parametrize(
    "kind",
    ["launch-failed", "game-exited", "deadline", "connection-lost", "bad-reply", "port-taken"],
)
def test_every_fault_a_game_can_raise_has_its_advice(kind):
    findings, launch = Findings(), CHECKS["launch"]
    with pytest.raises(ProbeFailed, match=r"^launch$"), findings.trying(launch):
        raise GameFault(kind, "the detail")
    (finding,) = findings.in_order([launch], "")
    assert finding.judgement[:2] == (FAILED, "the detail")
    assert finding.judgement.advice


def test_failure_before_any_game_has_the_advice_of_its_check():
    findings, game = Findings(), CHECKS["game"]
    with pytest.raises(ProbeFailed), findings.trying(game):
        raise ConfigError("there is none")
    (finding,) = findings.in_order([game], "")
    assert finding.judgement == (FAILED, "there is none", game.remedy)
    assert "SC2PATH" in game.remedy


def test_durations():
    assert durations([5.0, *[1.0] * 17, 2.0, 3.0]) == pytest.approx((20, 5.0, 1.0, 3.1, 5.0))
