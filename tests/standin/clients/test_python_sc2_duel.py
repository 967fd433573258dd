"""python-sc2, unmodified: two of its bots play each other, in all the ways it has for that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.duels import free_ports

PROGRAM = Path(__file__).with_name("python_sc2_duel.py")
TIMEOUT_S = 90


def _start(installation, how: str, ports: list[int], replay, *flags: str) -> subprocess.Popen[str]:
    server, player = ports[:2], ports[2:]
    said = json.dumps({"shared": None, "server": server, "players": [player]})
    return subprocess.Popen(
        [sys.executable, PROGRAM, how, said, replay, *flags],
        env=os.environ | {"SC2PATH": str(installation), "SC2PF": "Linux"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _said(program: subprocess.Popen[str]) -> dict:
    try:
        out, errors = program.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        program.kill()
        out, errors = program.communicate()  # which says how far it came
    assert program.returncode == 0, errors[-3000:] + out[-3000:]
    return json.loads(out.splitlines()[-1])


def _seen(player: int) -> dict:
    enemy = [25.5, 25.5] if player == 1 else [6.5, 6.5]
    return {"player": player, "marines": 5, "enemy": [enemy]}


def _by_player(seen: list[dict]) -> list[dict]:
    return sorted(seen, key=lambda one: one["player"])


def test_run_game(installation, tmp_path):
    replay = tmp_path / "duel.SC2Replay"
    said = _said(_start(installation, "run_game", free_ports(4), replay))
    assert said["results"] == ["Victory", "Defeat"]
    assert _by_player(said["seen"]) == [_seen(1), _seen(2)]
    assert said["saved"]


def test_run_game_in_real_time(installation, tmp_path):
    replay = tmp_path / "duel.SC2Replay"
    said = _said(_start(installation, "run_game", free_ports(4), replay, "--realtime"))
    # The machine's speed decides who wins, and whether the last two fall at once.
    assert sorted(said["results"]) in (["Defeat", "Victory"], ["Tie", "Tie"])
    assert _by_player(said["seen"]) == [_seen(1), _seen(2)]


def test_run_multiple_games(installation, tmp_path):
    said = _said(_start(installation, "run_multiple_games", free_ports(4), tmp_path / "none"))
    assert said["results"] == ["Victory", "Defeat"] * 2


def _play_host_and_guest(installation, tmp_path, *flags: str) -> list[dict]:
    ports = free_ports(4)
    programs = [
        _start(installation, how, ports, tmp_path / "none", *flags) for how in ("host", "guest")
    ]
    return [_said(program) for program in programs]


def test_a_host_that_stays_and_external_guests(installation, tmp_path):
    host, guest = _play_host_and_guest(installation, tmp_path)
    assert [sorted(pair) for pair in zip(host["results"], guest["results"], strict=True)] == [
        ["Defeat", "Victory"]
    ] * 2
    assert host["seen"] == [_seen(1)] * 2
    assert guest["seen"] == [_seen(2)] * 2


def test_whoever_leaves_has_lost(installation, tmp_path):
    # `run_game` cannot tell: the first of its two games that is done kills the other one, which may
    # still be saving its replay.
    host, guest = _play_host_and_guest(installation, tmp_path, "--leaves")
    assert (host["results"], guest["results"]) == (["Defeat"] * 2, ["Victory"] * 2)
    assert (host["seen"], guest["seen"]) == ([_seen(1)] * 2, [_seen(2)] * 2)
