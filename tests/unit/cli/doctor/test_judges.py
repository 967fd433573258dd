"""Every row of the table of checks is judged, in each of the ways it can go."""

from __future__ import annotations

from pathlib import Path

import pytest

from sc2pool.cli.doctor.checks import all_checks, judge, map_check
from sc2pool.cli.doctor.measurements import (
    AwaitedLoop,
    Comparison,
    Cores,
    Durations,
    EpisodeEnd,
    Found,
    Growth,
    HardReset,
    Kill,
    Limit,
    MapPlace,
    Markers,
    Memory,
    Pace,
    Package,
    Pause,
    Ports,
    ProcessTest,
    PythonSetup,
    Space,
    Variety,
    Version,
    YesNo,
)
from sc2pool.cli.doctor.verdict import Broke, Outcome, Unknown, Verdict
from sc2pool.errors import FaultKind

OK, DIFFERS, FAILED = Outcome.OK, Outcome.DIFFERS, Outcome.FAILED
GB, MB = 10**9, 10**6
MAP = map_check("MoveToBeacon")
CHECKS = {check.name: check for check in all_checks(["MoveToBeacon"])}
HERE = Path("/somewhere")
BELONGS = HERE / "Maps/mini_games/MoveToBeacon.SC2Map"
NUMPY = Package("numpy", "2.1.0", "1.26")


def took(*seconds: float) -> Durations:
    return Durations.of(seconds)


def pause(at_once: int, after: int) -> Pause:
    """A stop of 2 s, which is 45 loops, and 2 s of running beside it, which is 45 more."""
    return Pause(100, 100 + at_once, 100 + after, stopped_s=2.0, ran_s=2.0, loops_per_s=22.4)


CASES: list[tuple[str, object, Outcome, str]] = [
    ("game", Found(HERE, HERE / "SC2_x64", 75689, "SC2PATH='x'"), OK, "SC2PATH='x'"),
    (MAP, MapPlace(BELONGS, BELONGS, ("MoveToBeacon",)), OK, str(BELONGS)),
    (MAP, MapPlace(None, BELONGS, ("MoveToBeacon",)), FAILED, "needed by MoveToBeacon"),
    (MAP, MapPlace(None, BELONGS, ()), Outcome.NOT_POSSIBLE, "no built-in task needs it"),
    ("python", PythonSetup((3, 12, 1), (NUMPY,)), OK, "Python 3.12.1; numpy 2.1.0"),
    ("python", PythonSetup((3, 10, 9), (NUMPY,)), DIFFERS, "3.10.9"),
    ("python", PythonSetup((3, 15, 0), (NUMPY,)), DIFFERS, "3.15.0"),
    ("python", PythonSetup((3, 12, 1), (Package("numpy", "1.9.5", "1.26"),)), FAILED, "1.9.5"),
    ("python", PythonSetup((3, 12, 1), (Package("picows", None, "2"),)), FAILED, "missing"),
    ("cores", Cores(2, 8), OK, "2 of 8"),
    ("memory", Memory(8 * GB, 16 * GB), OK, "8.0 of 16.0 GB free"),
    ("memory", Memory(8 * GB, 16 * GB, 500 * MB), OK, "room for 16 games"),
    ("memory", Memory(GB // 2, 16 * GB), DIFFERS, "0.5 of"),
    ("memory", Memory(GB // 2, 16 * GB, 600 * MB), FAILED, "room for 0 games"),
    ("disk", Space(HERE, 20 * GB, 40 * GB), OK, "20.0 GB free in /somewhere"),
    ("disk", Space(HERE, GB // 2, 40 * GB), DIFFERS, "0.5 GB"),
    ("disk", Space(HERE, 1, 40 * GB), FAILED, "0.0 GB"),
    ("shared memory", Space(HERE, 64 * MB, 64 * MB), OK, "64 MB of 64 MB"),
    ("shared memory", Space(HERE, 1 * MB, 64 * MB), DIFFERS, "1 MB of 64 MB"),
    ("open files", Limit(1024, None), OK, "1,024 (hard limit unlimited)"),
    ("open files", Limit(256, 4096), DIFFERS, "256 (hard limit 4,096)"),
    ("processes", Limit(None, None), OK, "unlimited"),
    ("processes", Limit(500, 500), DIFFERS, "500"),
    ("ports", Ports(10000, 32767, 20000), OK, "port 20000 of 10000–32767"),
    ("listener", YesNo(True), OK, "tells"),
    ("listener", YesNo(False), DIFFERS, "does not tell"),
    ("launch", took(3.0), OK, "3.00 s"),
    ("launch", took(80.0), DIFFERS, "80.00 s"),
    ("launch again", took(0.1), OK, "100 ms"),
    ("create+join", took(9, 1, 2, 3, 1), OK, "p50 2.00 s, p95 9.00 s, first 9.00 s"),
    ("create+join", took(1, 50), DIFFERS, "longest 50.00 s"),
    ("restart", took(*[0.001] * 50), OK, "1.00 ms"),
    ("restart", took(31.0), DIFFERS, "31.00 s"),
    ("burst step", took(0.002, 0.004), OK, "p50 2.00 ms"),
    ("burst step", took(0.002, 6.0), DIFFERS, "longest 6.00 s"),
    ("single step", took(0.002), OK, "2.00 ms"),
    ("memory growth", Growth(500 * MB, 520 * MB, 50), OK, "+0.40 MB a reset"),
    ("memory growth", Growth(500 * MB, 1000 * MB, 50), DIFFERS, "+10.00 MB a reset"),
    ("memory growth", Growth(500 * MB, 5000 * MB, 50), FAILED, "5,000 MB"),
    ("kill", Kill(0.05, gone=True), OK, "50 ms, nothing left"),
    ("kill", Kill(3.0, gone=True), DIFFERS, "3.00 s"),
    ("kill", Kill(5.0, gone=False), FAILED, "still there"),
    ("version", Version("4.10.0", 75689, 75689), OK, "4.10.0, base build 75689"),
    ("version", Version("4.10.0", 75689, 80000), DIFFERS, "75689"),
    ("ready markers", Markers(("Listening on:",), ()), OK, "Listening on:"),
    ("ready markers", Markers((), ("Listening on:",)), DIFFERS, "not printed"),
    ("proven listener", YesNo(True), OK, "proven"),
    ("proven listener", YesNo(False), DIFFERS, "not proven"),
    ("reply ids", YesNo(True), OK, "yes"),
    ("reply ids", YesNo(False), DIFFERS, "no"),
    ("determinism", Comparison(200, ""), OK, "200 observations"),
    ("determinism", Comparison(200, "observation 3, x: 1 and 2"), DIFFERS, "observation 3"),
    ("bursts", Comparison(100, ""), OK, "100 observations"),
    ("bursts", Comparison(100, "observation 3, x: 1 and 2"), FAILED, "observation 3"),
    ("seed", Variety(2, 2), OK, "another beginning"),
    ("seed", Variety(2, 1), DIFFERS, "the same"),
    ("restart and seed", Comparison(5, "observation 0, x: 1 and 2"), OK, "no, it goes on"),
    ("restart and seed", Comparison(5, ""), DIFFERS, "yes: 5 observations"),
    ("restart variety", Variety(51, 50), OK, "50 different beginning(s) in 51"),
    ("restart variety", Variety(51, 1), DIFFERS, "1 different beginning(s) in 51"),
    ("hard reset", HardReset(50, None), OK, "not in 50 restarts"),
    ("hard reset", HardReset(50, 3), DIFFERS, "after 3 restarts"),
    ("episode end", EpisodeEnd(1920, 0, by_command=False), OK, "with the result at once"),
    ("episode end", EpisodeEnd(1920, 1, by_command=True), OK, "by a debug command"),
    ("episode end", EpisodeEnd(1920, 2, by_command=False), DIFFERS, "2 observation(s) later"),
    ("episode end", EpisodeEnd(1920, None, by_command=False), DIFFERS, "never came"),
    ("restart after end", YesNo(True), OK, "yes"),
    ("restart after end", YesNo(False), DIFFERS, "created anew"),
    ("exit on request", ProcessTest(True, 0.1, "exit code 0"), OK, "exit code 0"),
    ("exit on request", ProcessTest(False, 5.0, "refused"), DIFFERS, "refused"),
    ("real time", Pace(45, 2.0), OK, "22.5 loops/s"),
    ("real time", Pace(43, 2.0), OK, "21.5 loops/s"),
    ("real time", Pace(40, 2.0), DIFFERS, "20.0 loops/s"),
    ("real time", Pace(0, 2.0), DIFFERS, "0.0 loops/s"),
    ("awaited loop", AwaitedLoop(10, 30, 30, 0.9), OK, "for loop 30, got loop 30"),
    ("awaited loop", AwaitedLoop(10, 30, 32, 0.9), OK, "got loop 32"),
    ("awaited loop", AwaitedLoop(10, 30, 10, 0.0), DIFFERS, "got loop 10"),
    ("awaited loop", AwaitedLoop(10, 30, 40, 1.3), DIFFERS, "got loop 40"),
    ("stop and go on", pause(0, 45), OK, "no, it goes on where it was"),
    ("stop and go on", pause(45, 90), DIFFERS, "yes: stopped for 2.0 s"),
    ("stop and go on", pause(3, 90), DIFFERS, "yes: stopped for 2.0 s"),
    ("stop and go on", pause(10, 68), DIFFERS, "in part"),
]


def verdict_on(name: str, measurement: object) -> Verdict:
    (finding,) = judge([CHECKS[name]], {name: measurement})
    return finding.verdict


@pytest.mark.parametrize(("name", "measurement", "outcome", "figure"), CASES)
def test_a_measurement(name: str, measurement: object, outcome: Outcome, figure: str) -> None:
    verdict = verdict_on(name, measurement)
    assert verdict.outcome is outcome
    assert figure in verdict.figure
    # Where something is not as it should be, it is said what that means or what to do.
    assert bool(verdict.advice) == (outcome in (DIFFERS, FAILED))


def test_every_check_is_among_the_cases() -> None:
    assert list(CHECKS) == list(dict.fromkeys(name for name, *_ in CASES))


def test_what_was_not_measured() -> None:
    for name in CHECKS:
        assert verdict_on(name, Unknown("too late")) == (Outcome.NOT_POSSIBLE, "too late", "")
    unmeasured = judge(CHECKS.values(), {})
    assert {finding.verdict.outcome for finding in unmeasured} == {Outcome.NOT_POSSIBLE}


@pytest.mark.parametrize(
    "kind",
    [
        FaultKind.LAUNCH_FAILED,
        FaultKind.GAME_EXITED,
        FaultKind.DEADLINE,
        FaultKind.CONNECTION_LOST,
        FaultKind.BAD_REPLY,
        FaultKind.PORT_TAKEN,
    ],
)
def test_every_fault_a_game_can_raise_has_its_advice(kind: FaultKind) -> None:
    verdict = verdict_on("launch", Broke("the detail", kind))
    assert (verdict.outcome, verdict.figure) == (FAILED, "the detail")
    assert verdict.advice


def test_what_failed_before_any_game_has_the_advice_of_its_check() -> None:
    assert "SC2PATH" in verdict_on("game", Broke("there is none")).advice


def test_durations() -> None:
    durations = Durations.of([5.0, *[1.0] * 17, 2.0, 3.0])
    assert durations == Durations(20, first_s=5.0, p50_s=1.0, p95_s=3.0, longest_s=5.0)
