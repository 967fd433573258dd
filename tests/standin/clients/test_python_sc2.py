"""Unmodified python-sc2 plays the stand-in: its helpers, melee bots, and two bots in one game.

The programs in this folder play the bots, and print the results as JSON. The examples of
python-sc2's own repository are played by `tests/peers/python_sc2_examples.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sc2.main import get_replay_version

from sc2standin.version import BASE_BUILD, DATA_VERSION
from tests.support.duels import free_ports
from tests.support.programs import start

TIMEOUT_S = 300
Program = subprocess.Popen[str]


@pytest.fixture
def run(installation: Path) -> Callable[..., Program]:
    """Runs a program of this folder."""

    def start_one(name: str, *arguments: object) -> Program:
        path = Path(__file__).with_name(f"{name}.py")
        fixed = {"SC2PATH": str(installation), "SC2PF": "Linux", "PYTHONHASHSEED": "1"}
        return start(sys.executable, path, *arguments, env=os.environ | fixed)

    return start_one


def said(program: Program, *, quiet: bool = False) -> Any:
    """The program's last line, as JSON; with `quiet`, fails if the program logs a traceback."""
    try:
        out, errors = program.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        program.kill()
        out, errors = program.communicate()  # the output shows how far the program came
    assert program.returncode == 0, errors[-3000:] + out[-3000:]
    assert not (quiet and "Traceback" in errors), errors[-3000:]
    return json.loads(out.splitlines()[-1])


def test_a_bots_helpers(run, tmp_path):
    replay = tmp_path / "game.SC2Replay"
    told = said(run("python_sc2_bot", "MoveToBeacon", replay))
    assert told.pop("distance") == pytest.approx(5.0)
    dps, reach, speed = told.pop("dps")
    assert (dps, reach, speed) == pytest.approx((6 / 0.860839844, 5, 2.25))
    assert told == {
        "costs": [[50, 0], [200, 150], [100, 100]],
        "supply": 1,
        "value": 550,
        "can_afford": False,
        "pending": [0, 0, 0, 0],
        "damage": 6,
        "place": [True, False],
        "found": True,
        "abilities": [
            "SMART",
            "STOP_STOP",
            "MOVE_MOVE",
            "PATROL_PATROL",
            "HOLDPOSITION_HOLD",
            "ATTACK_ATTACK",
        ],
        "can_cast": True,
    }
    assert get_replay_version(replay) == (f"Base{BASE_BUILD}", DATA_VERSION)


def _reached(run, bot: str) -> dict:
    return said(run("python_sc2_melee", bot), quiet=True)


def test_a_worker_rush_is_fought_out(run):
    reached = _reached(run, "Rush")
    assert reached["result"] == "Victory"
    assert reached["killed"] >= 600


def test_a_builder_walls_expands_and_spreads_its_workers(run):
    reached = _reached(run, "Builder")
    assert reached["wall"] >= 2
    assert reached["town_halls"] == 2
    assert reached["at_expansions"]
    assert len(reached["marines"]) >= 4
    assert max(reached["surplus"]) <= 2
    assert reached["errors"] == []


def test_a_mechanic_has_mules_a_tech_lab_cyclones_and_a_barracks_that_moved(run):
    reached = _reached(run, "Mechanic")
    assert reached["cyclones"] >= 2
    assert reached["labs"] == [True]
    assert reached["mules"] >= 1
    assert reached["lifted"]
    assert reached["errors"] == []


def _ports() -> str:
    """Free ports, in the format of python-sc2."""
    ports = free_ports(4)
    return json.dumps({"shared": None, "server": ports[:2], "players": [ports[2:]]})


def _seen(player: int) -> dict:
    enemy = [25.5, 25.5] if player == 1 else [6.5, 6.5]
    return {"player": player, "marines": 5, "enemy": [enemy]}


def _by_player(seen: list[dict]) -> list[dict]:
    return sorted(seen, key=lambda one: one["player"])


def test_run_game(run, tmp_path):
    replay = tmp_path / "duel.SC2Replay"
    told = said(run("python_sc2_duel", "run_game", _ports(), replay))
    assert told["results"] == ["Victory", "Defeat"]
    assert _by_player(told["seen"]) == [_seen(1), _seen(2)]
    assert told["saved"]


def test_run_game_in_real_time(run, tmp_path):
    replay = tmp_path / "duel.SC2Replay"
    told = said(run("python_sc2_duel", "run_game", _ports(), replay, "--realtime"))
    # The machine's speed decides who wins, and whether the last two units die in the same loop.
    assert sorted(told["results"]) in (["Defeat", "Victory"], ["Tie", "Tie"])
    assert _by_player(told["seen"]) == [_seen(1), _seen(2)]


def test_run_multiple_games(run, tmp_path):
    told = said(run("python_sc2_duel", "run_multiple_games", _ports(), tmp_path / "none"))
    assert told["results"] == ["Victory", "Defeat"] * 2


def _play_host_and_guest(run, tmp_path, *flags: str) -> list[dict]:
    ports = _ports()
    programs = [
        run("python_sc2_duel", how, ports, tmp_path / "none", *flags) for how in ("host", "guest")
    ]
    return [said(program) for program in programs]


def test_a_host_that_stays_and_external_guests(run, tmp_path):
    host, guest = _play_host_and_guest(run, tmp_path)
    assert [sorted(pair) for pair in zip(host["results"], guest["results"], strict=True)] == [
        ["Defeat", "Victory"]
    ] * 2
    assert host["seen"] == [_seen(1)] * 2
    assert guest["seen"] == [_seen(2)] * 2


def test_whoever_leaves_has_lost(run, tmp_path):
    # `run_game` kills a game as soon as the other game is done, even if a replay is being saved.
    # So two programs play, and each has one game.
    host, guest = _play_host_and_guest(run, tmp_path, "--leaves")
    assert (host["results"], guest["results"]) == (["Defeat"] * 2, ["Victory"] * 2)
    assert (host["seen"], guest["seen"]) == ([_seen(1)] * 2, [_seen(2)] * 2)
