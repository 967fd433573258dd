"""`sc2pool doctor --full` finds each reported behaviour on a game that has it, and on no other."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from sc2pool.cli.doctor import full
from sc2pool.cli.doctor.findings import Finding, Findings, Grade
from sc2pool.cli.doctor.lab import Lab, find_maps
from sc2pool.cli.doctor.machine import probe_installation, probe_maps, tasks_by_map
from sc2pool.game.program.settled import Settled
from tests.support.installations import changed

FAKE_GAME = Path(__file__).parents[1] / "game" / "fake_game.py"
DIFFERS, OK = Grade.DIFFERS, Grade.OK
Measure = Callable[..., tuple[dict[str, Finding], Settled]]


@pytest.fixture
def measure() -> Measure:
    """Makes measurements on an installation; the findings by check, and the settled facts."""

    def make(game: Path, *names: str) -> tuple[dict[str, Finding], Settled]:
        findings = Findings()
        installation = probe_installation(str(game), findings)
        assert installation is not None
        mini = probe_maps(installation, tasks_by_map(), findings)
        lab = Lab(installation, find_maps(installation, mini), findings, patient=False)
        asyncio.run(full.measure(lab, names))
        checks = [check for part in full.PARTS if part.name in names for check in part.checks]
        found = findings.in_order(checks, "it was not measured at all")
        by_name = {finding.check.name: finding for finding in found}
        return by_name, full.settled_by(findings, Settled())

    return make


TEMPERS = [
    ("silent-end", "D01", "D01 awaited end", "were not answered within"),
    ("not-in-game", "D02", "D02 polled end", "refused: Not in a game (status launched)"),
    ("untold-end", "D03", "D03 match end", "the loop goes on"),
    (
        "untold-end:still",
        "D03",
        "D03 match end",
        "stands still; an action gets YouCantControlThatUnit",
    ),
    ("both-win", "D03", "D03 match results", "both Victory"),
    ("stub-end", "D04", "D04 stepped end", "are stubs"),
    ("spent-minerals", "D05", "D05 restart restores", "minerals in fields"),
    ("map-data:20", "D08", "D08 many resets", "create 19 fails: create_game was refused"),
    ("fatal-close", "D10", "D10 closed socket", "step pending: ends (signal SIGSEGV)"),
    ("fatal-close:spin", "D10", "D10 closed socket", "% of a core"),
    ("fatal-close:flood", "D10", "D10 closed socket", "prints"),
    ("error-box", "D11", "D11 ends", "crash in game: the process stays"),
    ("crowd:2", "D12", "D12 launches at once", "joins at once take up to"),
    ("same-instant:0.3", "D12", "D12 launches at once", "1 of 2 at once failed"),
    ("warnings", "D18", "D18 warnings", "The command was carried out, with a warning"),
    ("late-units", "D21", "D21 installed maps", "appear late"),
    ("stalled-map", "D21", "D21 waves", "the map stalls"),
    ("no-player", "D22", "D22 odd maps", "joined as player 0 with the status launched"),
    ("slowing:0.0005", "D24", "D24 speed", "times as much"),
]
SETTLED: dict[str, dict[str, object]] = {
    "silent-end": {"silent_end": True},
    "spent-minerals": {"restart_faithful": False},
}
"""The facts that are settled by the measurement that finds the temper."""


@pytest.mark.parametrize("found", TEMPERS, ids=lambda found: found[0])
def test_a_temper_is_found(
    found: tuple[str, str, str, str], measure: Measure, tempered: Callable[[str], Path]
) -> None:
    temper, part, check, words = found
    findings, settled = measure(tempered(temper), part)
    judgement = findings[check].judgement
    assert judgement.outcome is DIFFERS, judgement
    assert words in judgement.figure
    assert judgement.advice
    for fact, value in SETTLED.get(temper, {}).items():
        assert getattr(settled, fact) is value


STOPS = ("D16 stops", "D16 match stops")
"""A kind game plays the loops that it has missed."""


@pytest.mark.parametrize(
    ("part", "differing", "facts"),
    [
        ("D01", (), {"silent_end": False}),
        ("D02", (), {}),
        ("D03", (), {}),
        ("D04", (), {}),
        ("D05", (), {"restart_faithful": True}),
        ("D06", (), {}),
        ("D07", (), {}),
        ("D08", (), {}),
        ("D09", (), {"bursts_in_matches": True}),
        ("D10", (), {}),
        ("D11", (), {}),
        ("D14", (), {}),
        ("D15", (), {}),
        ("D16", STOPS, {"after_stop": "catch-up"}),
        ("D18", (), {}),
        ("D19", (), {}),
        ("D20", (), {}),
        ("D21", (), {}),
        ("D22", (), {}),
        ("D23", (), {}),
        ("D25", (), {}),
        ("D26", (), {}),
        ("D27", (), {}),
    ],
)
def test_a_kind_game_differs_in_nothing_else(
    part: str,
    differing: tuple[str, ...],
    facts: dict[str, Any],
    measure: Measure,
    tempered: Callable[[str], Path],
) -> None:
    findings, settled = measure(tempered("kind"), part)
    others = {name: f.judgement for name, f in findings.items() if f.judgement.outcome is not OK}
    assert tuple(others) == differing, others
    assert settled == Settled(**facts, measured=settled.measured)
    assert bool(settled.measured) == bool(facts)


def test_a_map_that_ends_the_game_is_named(
    measure: Measure, tempered: Callable[[str], Path], tmp_path: Path
) -> None:
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
    # Another process loads the other maps.
    assert "loaded" in judgement.figure
    assert "newer editor" in judgement.advice


@pytest.fixture
def fake_game(standin_dir: Path, tmp_path: Path) -> Callable[..., Path]:
    """Makes an installation of the fake game, which behaves as asked."""

    def make(**behaviour: Any) -> Path:
        script = f'#!/bin/sh\nexec "{sys.executable}" "{FAKE_GAME}" "$@"\n'
        root = changed(standin_dir, tmp_path / "StarCraftII", lambda _: script)
        (root / "behaviour.json").write_text(json.dumps(behaviour))
        return root

    return make


def test_a_game_that_hangs_costs_a_measurement_its_limit(
    measure: Measure, fake_game: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [part._replace(limit_s=6.0) if part.name == "D24" else part for part in full.PARTS]
    monkeypatch.setattr(full, "PARTS", tuple(parts))
    findings, _ = measure(fake_game(on_step={"1": "stop"}), "D24", "D26")
    hung = findings["D24 speed"].judgement
    assert (hung.outcome, hung.figure) == (DIFFERS, "not done within its limit of 6 s")
    assert hung.advice
    # The next one has another game.
    assert findings["D26 ids"].judgement.outcome is OK


def test_a_game_that_ends_is_a_finding(measure: Measure, fake_game: Callable[..., Path]) -> None:
    findings, _ = measure(fake_game(on_step={"1": "exit"}), "D24", "D26")
    judgement = findings["D24 speed"].judgement
    assert judgement.outcome is DIFFERS
    assert "exit code 3" in judgement.figure
    assert findings["D26 ids"].judgement.outcome is OK


def test_measurements_without_maps_say_so(
    measure: Measure, standin_dir: Path, tmp_path: Path
) -> None:
    root = tmp_path / "StarCraftII"
    shutil.copytree(standin_dir, root, ignore=shutil.ignore_patterns("Maps"))
    findings, settled = measure(root, *(part.name for part in full.PARTS))
    without = {
        name: finding.judgement.figure
        for name, finding in findings.items()
        if finding.judgement.outcome is Grade.NOT_POSSIBLE
    }
    assert "no map to play was found" in without["D01 awaited end"]
    assert "no melee map was found" in without["D09 match bursts"]
    assert "no map with minerals was found" in without["D05 restart restores"]
    # The folder of maps is empty, so none of them fails.
    assert without["D21 installed maps"] == "no map is installed"
    assert {name for name in findings if name not in without} == {"D26 ids"}
    assert settled == Settled()


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pools of other tests do not use the facts that this one settles."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_the_report_is_written_and_facts_are_shown(
    in_process: Callable[..., tuple[int, str, str]],
    standin_dir: Path,
    tmp_path: Path,
    own_cache: None,
) -> None:
    out = tmp_path / "new" / "folder"
    arguments = ("doctor", "--quick", "--full", "--timeout", "12", "--game", standin_dir)
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
    in_process: Callable[..., tuple[int, str, str]], standin_dir: Path, tmp_path: Path
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
    command = [sys.executable, "-m", "sc2pool", "doctor", "--quick", "--full"]
    with subprocess.Popen(
        [*command, "--game", standin_dir, "--out", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as doctor:
        wait_for(lambda: list(run_temp.glob("sc2pool-doctor-*/sc2pool-game-*")))
        games = psutil.Process(doctor.pid).children()
        doctor.send_signal(signal.SIGINT)
        out, err = doctor.communicate(timeout=60)
    assert (doctor.returncode, out, err) == (130, "", "")
    _, alive = psutil.wait_procs(games, timeout=5)
    assert not alive
    assert not list(run_temp.glob("sc2pool-doctor-*"))
    assert not list(tmp_path.glob("doctor-*"))
