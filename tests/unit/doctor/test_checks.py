"""Tests every check of `sc2pool doctor` with each of the check's possible results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sc2pool.doctor.checks import Package, map_check
from sc2pool.doctor.diagnosis import all_checks
from sc2pool.doctor.ends import AwaitedEnd, End, MatchEnd, Stop
from sc2pool.doctor.findings import Check, Findings, Grade, Judgement, ProbeFailed
from sc2pool.doctor.launches import Closed, Ended, Launched, Window
from sc2pool.doctor.maps import Appearance, Opened
from sc2pool.doctor.matches import STOPPED, Loss, Pause, Taken
from sc2pool.doctor.resets import Beginning, Resets, Step
from sc2pool.doctor.stepping import durations
from sc2pool.errors import ConfigError, GameFault
from sc2pool.game.program.builds import Settled

OK, DIFFERS, FAILED = Grade.OK, Grade.DIFFERS, Grade.FAILED
GB, MB = 10**9, 10**6
CHECKS = {check.name: check for check in all_checks(["MoveToBeacon"], full=True)}
HERE = Path("/somewhere")
MAP = map_check("MoveToBeacon").name
BELONGS = HERE / "Maps/mini_games/MoveToBeacon.SC2Map"
NUMPY = Package(name="numpy", version="2.1.0", least="1.26")
OLD_NUMPY = Package(name="numpy", version="1.9.5", least="1.26")
NO_PICOWS = Package(name="picows", version=None, least="2")


def pause(at_once: int, after: int) -> tuple[float, ...]:
    """The measurements of a pause of 2 s, and of 2 s of running (45 loops) for comparison."""
    return 100, 100 + at_once, 100 + after, 2.0, 2.0, 22.4


def awaited(after_s: float | None, **fields: Any) -> AwaitedEnd:
    usual: dict[str, Any] = {"way": "a surrender", "ahead": 5, "loop": 9, "status": "ended"}
    return AwaitedEnd(**usual | {"after_s": after_s, "told": True, "refused": ""} | fields)


def end(**fields: Any) -> End:
    usual = {"way": "a surrender", "told_in": 1, "told_first": 0, "stubs": 0, "status": "ended"}
    return End(**usual | {"after": {"observation": "answered"}} | fields)


def match_end(host: str, guest: str, loops_after: int = 22) -> MatchEnd:
    return MatchEnd(
        realtime=True,
        results=[host, guest],
        statuses=["in_game", "in_game"],
        loops_after=loops_after,
        watched_s=6.0,
        action_result="",
    )


def stop(made_up: float) -> Stop:
    return Stop(stopped_s=1.0, missed=20.0, made_up=made_up)


def begun(**fields: Any) -> Beginning:
    usual = {"restarted": True, "own_race": "Terran", "enemy_race": "Protoss"}
    return Beginning(**usual | {"units": "12", "growth": 3} | fields)


BEGINNINGS = [begun(restarted=False)] * 2 + [begun()] * 4


def resets(**fields: Any) -> Resets:
    usual = {"kind": "create", "done": 100, "took_s": 1.0, "threads": 0, "files": 0}
    memory = {"first_bytes": 500 * MB, "last_bytes": 500 * MB}
    return Resets(**usual | memory | {"failure": ""} | fields)


def step(refused: str = "") -> Step:
    return Step(loops=1_000, took_s=0.5, refused=refused)


def loss(way: str, reply: str = "answered") -> Loss:
    return Loss(way=way, reply=reply, after_s=1.0, status="ended", result="Victory")


def pause_of(failure: str) -> Pause:
    return Pause(where="in a match", waited_s=5.0, failure=failure)


TAKEN = Taken(port="a port", kind="TCP", outcome="it begins as usual", took_s=1.0)


def closed(**fields: Any) -> Closed:
    usual = {"pending": "step", "killed_first": False, "ended": "", "after_s": 1.0, "words": ""}
    return Closed(**usual | {"cpu_share": 0.0, "log_bytes": 0, "core_bytes": 0} | fields)


def ended(**fields: Any) -> Ended:
    usual = {"way": "quit", "where": "in game", "ended": "exit code 0", "after_s": 1.0, "files": 2}
    return Ended(**usual | fields)


def launched(number: int, took_s: float, *failures: str) -> Launched:
    return Launched(number=number, apart_s=0.0, took_s=[took_s], failures=list(failures))


def window(cpu_s: float) -> Window:
    return Window(loops=1_000, cpu_s=cpu_s, wall_s=1.0, rss_bytes=500 * MB)


def shown(own: int | None, enemy: int | None) -> Appearance:
    return Appearance(map_name="3m", reset="create", own=own, enemy=enemy)


def opened(*, bad: bool) -> Opened:
    return Opened(what="a file", outcome="InvalidMapData", bad=bad)


CASES: list[tuple[str, tuple[Any, ...], Grade, str]] = [
    ("game", (HERE, HERE / "SC2_x64", 75689, "SC2PATH='x'"), OK, "SC2PATH='x'"),
    ("settled", (Settled(),), OK, "nothing"),
    (
        "settled",
        (
            Settled(
                restart_faithful=False, silent_end=True, after_stop="freeze", measured="2026-11-28"
            ),
        ),
        OK,
        "restores all: no, also with a computer or a random race: unknown, bursts in matches: "
        "unknown, silent ends: yes, after a stop: freeze (measured 2026-11-28)",
    ),
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
    ("version", ("4.9.0", 74071, 74071), OK, "cannot play games of two clients"),
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
    ("D01", ([awaited(0.1), awaited(0.2)], 10.0), OK, "yes: 2 of 2, 2 with the result"),
    ("D01", ([awaited(0.1, told=False)], 10.0), DIFFERS, "0 with the result"),
    ("D01", ([awaited(0.1, refused="Not in a game")], 10.0), DIFFERS, "Not in a game"),
    ("D01", ([awaited(0.1), awaited(None)], 10.0), DIFFERS, "no: 1 of 2 were not"),
    ("D02", ([end()],), OK, "told in 1 of 1 ends"),
    ("D02", ([end(told_first=None)],), DIFFERS, "told in 0 of 1"),
    (
        "D02",
        ([end(status="launched", after={"observation": "Not in a game"})],),
        DIFFERS,
        "refused: Not in a game (status launched)",
    ),
    ("D04", ([end(), end(told_first=1)],), OK, "1 × in observation 1; 1 × in observation 2"),
    ("D04", ([end(told_first=2)],), DIFFERS, "in observation 3"),
    ("D04", ([end(told_first=None)],), DIFFERS, "never"),
    ("D04", ([end(stubs=1)],), DIFFERS, "are stubs"),
    ("D04", ([end(after={"step": "It is over"})],), OK, "after the end step: It is over"),
    ("D03 match end", ([match_end("Victory", "Defeat")],), OK, "yes, in 1 of 1"),
    (
        "D03 match end",
        ([match_end("", "")],),
        DIFFERS,
        "(status in_game and in_game; the loop goes on",
    ),
    ("D03 match end", ([match_end("", "", loops_after=0)],), DIFFERS, "the loop stands still"),
    (
        "D03 match results",
        ([match_end("Victory", "Defeat"), match_end("Tie", "Tie")],),
        OK,
        "2 of 2",
    ),
    ("D03 match results", ([match_end("Victory", "Victory")],), DIFFERS, "1 × both Victory"),
    ("D03 match results", ([match_end("Victory", "Tie")],), DIFFERS, "1 × Victory and Tie"),
    ("D03 match results", ([match_end("", "")],), DIFFERS, "no match told"),
    ("D16 stops", ([stop(0.0), stop(1.0)],), OK, "freeze: made up 0% of 20 loops (1 s), 5%"),
    ("D16 stops", ([stop(19.0), stop(20.0)],), DIFFERS, "catch-up"),
    ("D16 stops", ([stop(0.0), stop(20.0)],), DIFFERS, "in part"),
    ("D16 match stops", ([stop(20.0)],), DIFFERS, "catch-up: made up 100% of 20 loops (1 s)"),
    ("D17", ([0, 2], [5]), OK, "loop 2 at the latest, 5 beside"),
    ("D17", ([0, 2], [300]), DIFFERS, "300 beside"),
    ("D05", (900, 1, 9000, ()), OK, "900 minerals mined and 1 field(s)"),
    ("D05", (90, 0, 9000, ()), OK, "this proves little"),
    ("D05", (900, 1, 9000, ("x: 1 instead of 2",)), DIFFERS, "x: 1 instead of 2"),
    ("D06", (BEGINNINGS,), OK, "4 restarts and 2 creations"),
    ("D06", ([], "Not today"), DIFFERS, "restart_game is refused: Not today"),
    ("D06", ([*BEGINNINGS, begun(units="11")],), DIFFERS, "1 began with other units"),
    ("D06", ([*BEGINNINGS, begun(growth=0)],), DIFFERS, "does nothing in 1"),
    (
        "D06",
        ([*BEGINNINGS, begun(restarted=False, enemy_race="Zerg")],),
        DIFFERS,
        "the race stays the same; 4 restarts and 3 creations; races: restarts 4 × Protoss",
    ),
    ("D07", (BEGINNINGS,), OK, "restarts 4 × Terran"),
    (
        "D07",
        ([*BEGINNINGS, begun(restarted=False, own_race="Zerg")],),
        DIFFERS,
        "the race stays the same",
    ),
    ("D08", ([resets()],), OK, "100 × create in 1.00 s: 500 MB (+0.0 MB)"),
    ("D08", ([resets(failure="Too many")],), DIFFERS, "create 101 fails: Too many"),
    ("D08", ([resets(last_bytes=900 * MB)],), DIFFERS, "create makes it grow"),
    ("D08", ([resets(files=100)],), DIFFERS, "create leaves files"),
    ("D25", ([step()], 524_288, 262_144, "", 900), OK, "hard reset is asked for after 262,144"),
    ("D25", ([step()], 524_288, None, "no", 900), OK, "then: no; an observation has 900 bytes"),
    ("D25", ([step()], 1_000, None, "", 900), OK, "2^18 = 262,144 loops took too long"),
    ("D25", ([step()], 1_000, 500, "", 900), DIFFERS, "before 2^18"),
    ("D25", ([step(refused="Too far")], 1, None, "", 9), DIFFERS, "a step of 1,000: Too far"),
    ("D09", (100, "", "", 40), OK, "100 observations of both sides are the same"),
    ("D09", (100, "", "host: observation 3", 40), DIFFERS, "no: host: observation 3"),
    ("D09", (100, "guest: observation 1", "", 40), DIFFERS, "it cannot be said"),
    ("D13", (20, [2.0, 1.0], GB, GB, ""), OK, "a start takes 2.00 s at first, 1.00 s"),
    ("D13", (0, [], 0, GB, "no join"), DIFFERS, "match 1 fails: no join"),
    ("D14", ([loss("it leaves"), loss(STOPPED, "nothing")],), OK, "it leaves: answered"),
    ("D14", ([loss("it quits", "nothing")],), DIFFERS, "it quits: nothing"),
    ("D15", ([pause_of("")],), OK, "5 s in a match: answered"),
    ("D15", ([pause_of("it is gone")],), DIFFERS, "5 s in a match: it is gone"),
    ("D23 taken ports", ([TAKEN],), OK, "a port (TCP): it begins as usual, 1.00 s"),
    ("D23 second client", ("it is refused", "it is refused", True), OK, "it is refused while"),
    ("D23 second client", ("it is refused", "it is accepted", False), DIFFERS, "gets no answer"),
    ("D10", ([closed()],), OK, "step pending: lives on"),
    ("D10", ([closed(killed_first=True, ended="signal SIGKILL")],), OK, "SIGKILL first"),
    ("D10", ([closed(ended="signal SIGSEGV")],), DIFFERS, "ends (signal SIGSEGV)"),
    ("D10", ([closed(cpu_share=1.0, words="Error")],), DIFFERS, "core, says 'Error'"),
    ("D10", ([closed(words="Error")],), DIFFERS, "lives on, says 'Error'"),
    ("D10", ([closed(log_bytes=5 * MB)],), DIFFERS, "prints 5 MB"),
    ("D10", ([closed(core_bytes=1)],), DIFFERS, "leaves a core file"),
    ("D11", ([ended()],), OK, "quit in game: exit code 0 after 1.00 s, 2 file(s) left"),
    ("D11", ([ended(ended="")],), DIFFERS, "quit in game: the process stays"),
    ("D11", ([ended(ended="signal SIGSEGV")],), DIFFERS, "signal SIGSEGV"),
    ("D12", ([launched(1, 5.0), launched(8, 20.0)], 1, [2, 2], 2), OK, "8 at once 20"),
    (
        "D12",
        ([launched(1, 5.0), launched(8, 90.0)], 1, [2, 2], 2),
        DIFFERS,
        "8 at once take up to 90.00 s each, one alone 5.00 s",
    ),
    ("D12", ([launched(1, 5.0)], 1, [9, 9], 2), DIFFERS, "2 joins at once take up to"),
    (
        "D12",
        ([launched(1, 5.0), launched(2, 5.0, "exit code 1")], 1, [], 2),
        DIFFERS,
        "1 of 2 at once failed (exit code 1)",
    ),
    ("D24", ([window(1.0)] * 9,), OK, "1,000 loops/s over 9 s"),
    ("D24", ([window(1.0 + n / 4) for n in range(9)],), DIFFERS, "1.7 times as much"),
    ("D24", ([window(1.0), window(3.0), *[window(1.0)] * 7],), OK, "a loop costs"),
    ("D20", (1, 2), OK, "created after 1 loop(s), killed after 2 loop(s)"),
    ("D20", (1, 9), DIFFERS, "killed after 9"),
    ("D20", (None, None), DIFFERS, "created: not seen"),
    ("D21 installed maps", ([shown(0, None)], {}), OK, "1 loaded"),
    (
        "D21 installed maps",
        ([shown(0, 12)], {}),
        DIFFERS,
        "units of 1 maps appear late: 3m at loop 12",
    ),
    (
        "D21 installed maps",
        ([shown(0, 0)], {"New": "signal SIGSEGV"}),
        DIFFERS,
        "New fails: signal",
    ),
    ("D21 installed maps", ([shown(None, 0)], {}), OK, "no own units within the time: 3m"),
    ("D21 waves", (4, 8, 240), OK, "yes, after 8 loop(s); one by one after 4"),
    ("D21 waves", (4, None, 240), DIFFERS, "the map stalls for 240 loops"),
    ("D21 waves", (None, None, 240), DIFFERS, "no wave comes within 240"),
    ("D22", ([opened(bad=False)],), OK, "a file: InvalidMapData"),
    ("D22", ([opened(bad=True)],), DIFFERS, "a file: InvalidMapData"),
    ("D19", ({"one client": 1, "match": 2},), OK, "one client: 1, match: 2"),
    ("D19", ({"match": None},), DIFFERS, "match: never"),
    ("D26", ({"none": None, "0": 0}, {}), OK, "none → none, 0 → 0"),
    ("D26", ({"7": None}, {}), DIFFERS, "7 → none"),
    ("D26", ({"7": 7}, {"a step as the reply to observation": 2}), DIFFERS, "2 × a step as"),
    ("D27", ([{"what": "saved", "outcome": "9 bytes", "expected": True}],), OK, "saved: 9 bytes"),
    ("D27", ([{"what": "saved", "outcome": "no", "expected": False}],), DIFFERS, "saved: no"),
    ("D18", (1000, {}, {"launched": {"ping": "answered"}}), OK, "no, in 1,000 replies; 0 of 1"),
    ("D18", (1000, {"step: mind": 3}, {}), DIFFERS, "yes, in 3 of 1,000 replies"),
]


def check_of(name: str) -> Check[...]:
    """The check with this name; or, for a number, the only check with this number."""
    if name in CHECKS:
        return CHECKS[name]
    (check,) = (one for one in CHECKS.values() if one.name.startswith(f"{name} "))
    return check


def judgement_on(name: str, measurement: tuple[Any, ...]) -> Judgement:
    findings = Findings()
    findings.note(check_of(name), *measurement)
    (finding,) = findings.in_order([check_of(name)], "")
    assert tuple(finding.measured.values())[: len(measurement)] == measurement
    return finding.judgement


@pytest.mark.parametrize(("name", "measurement", "outcome", "figure"), CASES)
def test_a_measurement(name, measurement, outcome, figure):
    judgement = judgement_on(name, measurement)
    assert judgement.outcome is outcome
    assert figure in judgement.figure
    # An unexpected result comes with advice, which says what the result means or what to do.
    assert bool(judgement.advice) == (outcome in (DIFFERS, FAILED))


def test_every_check_is_among_the_cases():
    assert list(CHECKS) == list(dict.fromkeys(check_of(name).name for name, *_ in CASES))


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
