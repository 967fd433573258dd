"""python-sc2, unmodified: two of its bots play each other, in all the ways it has for that."""

from __future__ import annotations

import json

from tests.standin.clients.conftest import said
from tests.support.duels import free_ports


def _ports() -> str:
    """Free ports, as python-sc2 writes them."""
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
    # The machine's speed decides who wins, and whether the last two fall at once.
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
    # `run_game` cannot tell: the first of its two games that is done kills the other one, which may
    # still be saving its replay.
    host, guest = _play_host_and_guest(run, tmp_path, "--leaves")
    assert (host["results"], guest["results"]) == (["Defeat"] * 2, ["Victory"] * 2)
    assert (host["seen"], guest["seen"]) == ([_seen(1)] * 2, [_seen(2)] * 2)
