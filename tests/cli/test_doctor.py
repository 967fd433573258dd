"""`sc2pool doctor` as a user runs it, on games that misbehave, and with `--full`.

`--full` reports a behaviour for a game that has it, and for no other game.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from sc2pool.config import Limits
from sc2pool.doctor import diagnosis
from sc2pool.doctor.diagnosis import Plan, all_checks, examine
from sc2pool.doctor.findings import Finding, Findings, Grade
from sc2pool.doctor.lab import Lab
from sc2pool.doctor.machine import probe_installation, probe_maps, tasks_by_map
from sc2pool.game.program.builds import Settled
from sc2pool.platform import WINDOWS
from tests.cli.conftest import COMMAND
from tests.support.installations import changed
from tests.support.programs import assert_gone, start

FAKE_GAME = Path(__file__).parents[1] / "game" / "fake_game.py"
SHORT = Plan(resets=3, steps=10, watch_s=0.3, timeout_s=90)
IMPATIENT = replace(SHORT, limits=Limits(step_s=0.5))
"""A plan for a game that hangs. Other games get `SHORT`, whose limits also suit a busy machine."""
Doctor = Callable[..., tuple[int, str]]
InProcess = Callable[..., tuple[int, str, str]]
Installed = Callable[[str], Path]
Examined = Callable[..., dict[str, Finding]]


@pytest.fixture
def doctor(in_process: InProcess) -> Doctor:
    """Runs `sc2pool doctor` in this process; returns its exit code and its report."""

    def run(*arguments: object) -> tuple[int, str]:
        code, out, err = in_process("doctor", *arguments)
        assert err == ""
        return code, out

    return run


@pytest.fixture
def game_of(standin_dir: Path, tmp_path: Path) -> Installed:
    """Makes an installation with the stand-in's maps, whose executable is a shell script."""

    return lambda script: changed(
        standin_dir, tmp_path / "StarCraftII", lambda _: f"#!/bin/sh\n{script}\n"
    )


@pytest.fixture
def fake_game(game_of: Installed) -> Callable[..., Path]:
    """Makes an installation of the fake game, which behaves as the arguments ask."""

    def make(**behaviour: Any) -> Path:
        root = game_of(f'exec "{sys.executable}" "{FAKE_GAME}" "$@"')
        (root / "behaviour.json").write_text(json.dumps(behaviour))
        return root

    return make


@pytest.fixture
def examined(fake_game: Callable[..., Path]) -> Examined:
    """Examines the fake game in this process; the game behaves as the arguments ask."""

    def look(plan: Plan = SHORT, **behaviour: Any) -> dict[str, Finding]:
        tasks, findings = tasks_by_map(), Findings()
        installation = probe_installation(str(fake_game(**behaviour)), findings)
        assert installation is not None
        playable = probe_maps(installation, tasks, findings)
        reason = asyncio.run(examine(installation, playable, plan, findings))
        found = findings.in_order(all_checks(tasks), reason)
        return {finding.check.name: finding for finding in found}

    return look


def test_a_game_that_works(doctor: Doctor, standin_dir: Path) -> None:
    code, out = doctor("--quick", "--json", "--game", standin_dir)
    report = json.loads(out)
    checks = {check["name"]: check for check in report["checks"]}
    wrong = [check for check in report["checks"] if check["outcome"] == "failed"]
    assert (code, report["works"], wrong) == (0, True, [])
    assert not [n for n, check in checks.items() if check["outcome"] == "not possible"]
    for name in ("determinism", "bursts", "seed", "reply ids", "ready markers", "episode end"):
        assert checks[name]["outcome"] == "ok", checks[name]
    assert checks["restart and seed"]["figure"].startswith("no, it goes on to another episode")
    assert checks["restart variety"]["measured"] == {"episodes": 11, "distinct": 11}
    assert checks["exit on request"]["measured"]["ended"]
    assert checks["stop and go on"]["measured"]["stopped_s"] >= 1.0
    assert checks["memory growth"]["measured"]["first_bytes"] > 1 << 20
    assert checks["kill"]["measured"]["gone"]


def test_a_game_with_every_reported_behaviour_can_be_used(
    doctor: Doctor, tempered: Installed
) -> None:
    code, out = doctor("--quick", "--json", "--game", tempered("all"))
    report = json.loads(out)
    wrong = [check for check in report["checks"] if check["outcome"] == "failed"]
    assert (code, report["works"], wrong) == (0, True, [])
    assert not [c for c in report["checks"] if c["outcome"] == "not possible"]


def test_an_empty_folder(doctor: Doctor, tmp_path: Path) -> None:
    code, out = doctor("--game", tmp_path)
    assert code == 1
    assert "has no folder Versions" in " ".join(out.split())
    assert "set SC2PATH to the folder that holds Versions and Maps" in out


def test_no_game_at_all(doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SC2PATH", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    code, out = doctor("--game", "real", "--json")
    assert code == 1
    game, *others = json.loads(out)["checks"]
    assert game["outcome"] == "failed"
    assert "SC2PATH is not set" in game["figure"]
    assert {"ok", "not possible"} >= {c["outcome"] for c in others if c["outcome"] != "differs"}


def without_maps(game: Path, folder: Path) -> Path:
    """A copy of an installation, without its maps."""
    return shutil.copytree(game, folder / "Game", ignore=shutil.ignore_patterns("Maps"))


def test_no_maps(doctor: Doctor, standin_dir: Path, tmp_path: Path) -> None:
    root = without_maps(standin_dir, tmp_path)
    code, out = doctor("--json", "--game", root)
    checks = {check["name"]: check for check in json.loads(out)["checks"]}
    belongs = root / "Maps" / "mini_games" / "MoveToBeacon.SC2Map"
    assert code == 1
    assert checks["map MoveToBeacon"]["outcome"] == "failed"
    assert f"put it at {belongs}" in checks["map MoveToBeacon"]["advice"]
    assert [checks[name]["outcome"] for name in ("launch", "version", "kill")] == ["ok"] * 3
    assert checks["restart"]["figure"] == "no map to play was found"


@pytest.mark.parametrize(
    ("script", "timeout_s", "told"),
    [
        ("echo 'libfoo.so: cannot open shared object'; exit 7", 60, ["exit code 7", "libfoo.so"]),
        ("exec sleep 1000", 1, ["was not ready in time", "--timeout"]),
        ("echo 'Failed to create the socket.'; exec sleep 1000", 60, ["could not listen on port"]),
    ],
    ids=["exits at once", "never listens", "gets no port"],
)
def test_a_game_that_does_not_come_up(
    doctor: Doctor, script: str, timeout_s: int, told: list[str], game_of: Installed
) -> None:
    code, out = doctor("--quick", "--timeout", timeout_s, "--game", game_of(script))
    assert code == 1
    _, _, to_fix = out.partition("WHAT IS WRONG")
    assert "\n1. launch: the game" in to_fix
    assert all(words in to_fix for words in told)


def test_a_game_of_another_system(doctor: Doctor, game_of: Installed) -> None:
    root = game_of("")
    (executable,) = root.glob("Versions/Base*/SC2_x64")
    executable.write_bytes(b"MZ\x90\0 no program of this system")
    code, out = doctor("--quick", "--game", root)
    assert code == 1
    assert "cannot start" in out
    assert "install the package for this one" in " ".join(out.split())


def test_too_little_time(doctor: Doctor, fake_game: Callable[..., Path]) -> None:
    # The game hangs in its fifth step; the usual time limit would make this test too slow.
    code, out = doctor("--json", "--timeout", "5", "--game", fake_game(on_step={"5": "stop"}))
    checks = json.loads(out)["checks"]
    assert code == 1
    (cut_short,) = [check for check in checks if check["outcome"] == "failed"]
    assert "5 s were up" in cut_short["figure"]
    assert any(check["figure"] == "the time was up (--timeout)" for check in checks)


posix_only = pytest.mark.skipif(WINDOWS, reason="has no SIGHUP")


def is_listening(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return bool(process.net_connections())
    return False


@pytest.mark.usefixtures("with_hangups")
@pytest.mark.parametrize("name", ["SIGTERM", pytest.param("SIGHUP", marks=posix_only)])
def test_a_signal_leaves_nothing(
    standin_dir: Path, run_temp: Path, wait_for: Any, name: str
) -> None:
    """The doctor ends its games at SIGTERM, and at SIGHUP (its terminal was closed)."""
    number = getattr(signal, name)
    with start(*COMMAND, "doctor", "--game", standin_dir) as doctor:
        process = psutil.Process(doctor.pid)
        wait_for(lambda: any(map(is_listening, process.children())))
        games = process.children()
        doctor.send_signal(number)
        out, err = doctor.communicate(timeout=300)
    assert (doctor.returncode, out, err) == (128 + number, "", "")
    assert_gone(games, within_s=5)
    assert not list(run_temp.glob("sc2pool-game-*"))


@pytest.mark.parametrize(
    ("behaviour", "check", "told"),
    [
        ({"on_step": {"5": "stop"}}, "burst step", "no reply to step before the deadline"),
        ({"on_step": {"5": "exit"}}, "burst step", "exit code 3"),
        ({"on_step": {"15": "disconnect"}}, "single step", "closed the connection"),
        ({"on_step": {"42": "close"}}, "restart and seed", "closed the websocket"),
        ({"stub": True}, "create+join", "stub"),
    ],
    ids=str,
)
def test_a_game_that_breaks_in_between(
    behaviour: dict[str, Any], check: str, told: str, examined: Examined
) -> None:
    hangs = "stop" in behaviour.get("on_step", {}).values()
    findings = examined(IMPATIENT if hangs else SHORT, **behaviour)
    assert findings[check].judgement.outcome is Grade.FAILED
    assert told in findings[check].judgement.figure
    assert findings["hard reset"].judgement.figure == f"what it needs failed: see {check!r}"
    # The examination continues with the second game.
    assert findings["launch again"].judgement.outcome is Grade.OK
    assert findings["kill"].judgement.outcome is Grade.OK


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (
            {},
            {
                "determinism": "ok",
                "bursts": "ok",
                "restart and seed": "ok",
                "seed": "ok",
                "episode end": "ok: ended by itself at game loop 1000, with the result at once",
                # Without requests the game stands still. The doctor knows none of its output lines.
                "real time": "differs",
                "awaited loop": "differs",
                "stop and go on": "not possible",
                "ready markers": "differs",
            },
        ),
        ({"drifts": True}, {"determinism": "differs", "bursts": "not possible"}),
        ({"bursts_differ": True}, {"determinism": "ok", "bursts": "failed"}),
        (
            {"same_again": True},
            {"seed": "differs", "restart and seed": "not possible", "restart variety": "differs"},
        ),
        (
            {"repeats_seed": True, "no_result": True},
            {
                "seed": "ok",
                "restart and seed": "differs",
                "episode end": "ok: ended by itself at game loop 1000, the result 1 observation",
            },
        ),
        (
            {"hard_reset": True},
            {"restart": "not possible", "hard reset": "differs", "restart after end": "differs"},
        ),
        (
            {"no_exit": True, "without_ids": True, "ends_at": None},
            {
                "exit on request": "differs",
                "reply ids": "differs",
                "bursts": "ok",
                "episode end": "not possible: the episode does not end",
            },
        ),
    ],
    ids=str,
)
def test_a_game_that_behaves_otherwise(
    behaviour: dict[str, Any],
    expected: dict[str, str],
    examined: Examined,
) -> None:
    findings = examined(**{"ends_at": 1000, **behaviour})
    for name, words in expected.items():
        judgement = findings[name].judgement
        assert f"{judgement.outcome}: {judgement.figure}".startswith(words), name


DIFFERS, OK = Grade.DIFFERS, Grade.OK


def measure(game: Path, *names: str) -> tuple[dict[str, Finding], Settled]:
    """Measures an installation; returns the findings by check, and the settled facts."""
    findings = Findings()
    installation = probe_installation(str(game), findings)
    assert installation is not None
    mini = probe_maps(installation, tasks_by_map(), findings)
    lab = Lab(installation, mini, findings, patient=False)
    asyncio.run(diagnosis.measure(lab, names))
    checks = [check for part in diagnosis.PARTS if part.name in names for check in part.checks]
    found = findings.in_order(checks, "it was not measured at all")
    by_name = {finding.check.name: finding for finding in found}
    return by_name, diagnosis.settled_by(findings, Settled())


TEMPERS = [
    ("silent-end", "D01 awaited end", "were not answered within"),
    ("not-in-game", "D02 polled end", "refused: Not in a game (status launched)"),
    ("untold-end", "D03 match end", "the loop goes on"),
    ("untold-end:still", "D03 match end", "stands still; an action gets YouCantControlThatUnit"),
    ("both-win", "D03 match results", "both Victory"),
    ("stub-end", "D04 stepped end", "are stubs"),
    ("spent-minerals", "D05 restart restores", "minerals in fields"),
    ("map-data:20", "D08 many resets", "create 19 fails: create_game was refused"),
    ("fatal-close", "D10 closed socket", "step pending: ends (signal SIGSEGV)"),
    ("fatal-close:spin", "D10 closed socket", "% of a core"),
    ("fatal-close:flood", "D10 closed socket", "prints"),
    ("error-box", "D11 ends", "crash in game: the process stays"),
    ("crowd:2", "D12 launches at once", "joins at once take up to"),
    ("same-instant:0.3", "D12 launches at once", "1 of 2 at once failed"),
    ("warnings", "D18 warnings", "The command was carried out, with a warning"),
    ("late-units", "D21 installed maps", "appear late"),
    ("stalled-map", "D21 waves", "the map stalls"),
    ("no-player", "D22 odd maps", "joined as player 0 with the status launched"),
    ("slowing:0.0005", "D24 speed", "times as much"),
]
SETTLED: dict[str, dict[str, object]] = {
    "silent-end": {"silent_end": True},
    "spent-minerals": {"restart_faithful": False},
}
"""For each temper (a quirk of a game), the facts that its measurement settles."""


@pytest.mark.parametrize("found", TEMPERS, ids=lambda found: found[0])
def test_a_temper_is_found(found: tuple[str, str, str], tempered: Installed) -> None:
    temper, check, words = found
    findings, settled = measure(tempered(temper), check.split()[0])
    judgement = findings[check].judgement
    assert judgement.outcome is DIFFERS, judgement
    assert words in judgement.figure
    assert judgement.advice
    for fact, value in SETTLED.get(temper, {}).items():
        assert getattr(settled, fact) is value


FACTS: dict[str, dict[str, Any]] = {
    "D01": {"silent_end": False},
    "D05": {"restart_faithful": True},
    "D09": {"bursts_in_matches": True},
    "D16": {"after_stop": "catch-up"},
}
"""The facts that the measurement of a game without tempers (quirks) settles."""
NOT_MEASURED = {"D12", "D13", "D17", "D24"}
"""The measurements that the next test leaves out, because they take long or measure durations."""


@pytest.mark.parametrize("part", sorted({part.name for part in diagnosis.PARTS} - NOT_MEASURED))
def test_a_kind_game_differs_in_nothing_else(part: str, tempered: Installed) -> None:
    findings, settled = measure(tempered("kind"), part)
    others = {name: f.judgement for name, f in findings.items() if f.judgement.outcome is not OK}
    # After a stop, the stand-in plays the loops that it missed during the stop.
    assert list(others) == (["D16 stops", "D16 match stops"] if part == "D16" else []), others
    facts = FACTS.get(part, {})
    assert settled == Settled(**facts, measured=settled.measured)
    assert bool(settled.measured) == bool(facts)


def test_a_map_that_ends_the_game_is_named(tempered: Installed, tmp_path: Path) -> None:
    root = tmp_path / "StarCraftII"
    shutil.copytree(tempered("map-crash"), root)
    good = root / "Maps" / "mini_games" / "MoveToBeacon.SC2Map"
    newer = json.loads(good.read_text()) | {"made_with_build": 99_999}
    (root / "Maps" / "Newer").mkdir()
    (root / "Maps" / "Newer" / "Tomorrow.SC2Map").write_text(json.dumps(newer))
    findings, _ = measure(root, "D21")
    judgement = findings["D21 installed maps"].judgement
    assert judgement.outcome is DIFFERS
    assert "Tomorrow fails: the game ended: signal SIGSEGV" in judgement.figure
    # After the crash, a second process loads the maps that remain.
    assert "loaded" in judgement.figure
    assert "newer editor" in judgement.advice


@pytest.mark.parametrize(
    ("does", "told"), [("stop", "not done within its limit of 6 s"), ("exit", "exit code 3")]
)
def test_a_game_that_hangs_or_ends_costs_one_measurement(
    does: str,
    told: str,
    fake_game: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts = [part._replace(limit_s=6.0) if part.name == "D24" else part for part in diagnosis.PARTS]
    monkeypatch.setattr(diagnosis, "PARTS", tuple(parts))
    findings, _ = measure(fake_game(on_step={"1": does}), "D24", "D26")
    judgement = findings["D24 speed"].judgement
    assert judgement.outcome is DIFFERS
    assert told in judgement.figure
    assert judgement.advice
    # The next measurement starts another game, so the failed measurement does not affect it.
    assert findings["D26 ids"].judgement.outcome is OK


def test_measurements_without_maps_say_so(standin_dir: Path, tmp_path: Path) -> None:
    root = without_maps(standin_dir, tmp_path)
    findings, settled = measure(root, *(part.name for part in diagnosis.PARTS))
    without = {
        name: finding.judgement.figure
        for name, finding in findings.items()
        if finding.judgement.outcome is Grade.NOT_POSSIBLE
    }
    assert "no map to play was found" in without["D01 awaited end"]
    assert "no melee map was found" in without["D09 match bursts"]
    assert "no map with minerals was found" in without["D05 restart restores"]
    # The folder of maps is empty, so no map fails.
    assert without["D21 installed maps"] == "no map is installed"
    assert {name for name in findings if name not in without} == {"D26 ids"}
    assert settled == Settled()


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives the test its own cache, so other pools do not use the facts that the test settles."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_the_report_is_written_and_facts_are_shown(
    in_process: InProcess,
    standin_dir: Path,
    tmp_path: Path,
    own_cache: None,
) -> None:
    out = tmp_path / "new" / "folder"
    arguments = ("doctor", "--quick", "--full", "--timeout", "3", "--game", standin_dir)
    _, printed, told = in_process(*arguments, "--out", out, "--json")
    json_file, text_file = sorted(out.iterdir())
    assert json_file.name.startswith("doctor-Base")
    assert (json_file.suffix, text_file.suffix) == (".json", ".txt")
    assert str(json_file) in told
    assert str(text_file) in told
    report = json.loads(json_file.read_text())
    assert report == json.loads(printed)
    names = [check["name"] for check in report["checks"]]
    assert {"settled", "D01 awaited end", "D18 warnings"} <= set(names)
    assert report["conclusion"] in " ".join(text_file.read_text().split())


def test_a_folder_that_may_not_be_written_to_is_said_first(
    in_process: InProcess, standin_dir: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    code, printed, told = in_process(
        "doctor", "--full", "--game", standin_dir, "--out", tmp_path / "file" / "folder"
    )
    assert (code, printed) == (2, "")
    assert "--out" in told


def test_ctrl_c_in_a_measurement_leaves_nothing(
    standin_dir: Path, run_temp: Path, tmp_path: Path, wait_for: Any, own_cache: None
) -> None:
    command = (*COMMAND, "doctor", "--quick", "--full", "--game", standin_dir, "--out", tmp_path)
    with start(*command) as doctor:
        wait_for(lambda: list(run_temp.glob("sc2pool-doctor-*/sc2pool-game-*")))
        games = psutil.Process(doctor.pid).children()
        doctor.send_signal(signal.SIGINT)
        out, err = doctor.communicate(timeout=60)
    assert (doctor.returncode, out, err) == (130, "", "")
    assert_gone(games, within_s=5)
    assert not list(run_temp.glob("sc2pool-doctor-*"))
    assert not list(tmp_path.glob("doctor-*"))
