"""Tests the tempers (imitated faults) of starts, joins, loading, restarts, crashes and old age."""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from pathlib import Path

import psutil
import pytest
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.version import BASE_BUILD
from tests.standin.sessions import (
    EMPTY_MAP,
    GameProcess,
    Wire,
    create_request,
    step_until,
)
from tests.standin.test_tempers import is_silent
from tests.support.duels import DUEL, RAW, TWO, free_ports, join_request
from tests.support.fuzz.wire import TIMEOUT_S
from tests.support.programs import run

PING, OBSERVE, STEP = sc_pb.RequestPing(), sc_pb.RequestObservation(), sc_pb.RequestStep(count=1)
JOIN = sc_pb.RequestJoinGame(race=1, options=RAW)
RESTART = sc_pb.RequestRestartGame()
CRASH = debug_pb.DebugCommand(
    test_process=debug_pb.DebugTestProcess(test=debug_pb.DebugTestProcess.crash)
)
CreateError = sc_pb.ResponseCreateGame
GATHER, BUILD_REFINERY = 3666, 320
CENTER, REFINERY, SCV, FIELD, GEYSER, MARINE = 18, 20, 45, 341, 342, 48
GARBAGE = b"PK\x03\x04 an archive whose password was not given"
PENDING = "Error terminating: trying to process a request this response pending: {}.\n"
BATTLE = "SMAC_Maps/3m"


def ends(game: GameProcess) -> tuple[int, str]:
    """Wait until the game ends by itself; returns its exit code and its unread output."""
    code = game.process.wait(TIMEOUT_S)
    assert game.process.stdout is not None
    return code, game.process.stdout.read()


@pytest.fixture
def in_tmp_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Runs a test in an empty folder, because core files are written into the working folder."""
    monkeypatch.chdir(tmp_path)


def contents(wire: Wire) -> dict[tuple[float, float], int]:
    """The remaining contents of mineral fields and geysers, by their places."""
    return {
        (one.pos.x, one.pos.y): one.mineral_contents + one.vespene_contents
        for one in wire.observe().raw_data.units
        if one.unit_type in (FIELD, GEYSER)
    }


@pytest.mark.parametrize("temper", ["kind", "spent-minerals"])
def test_spent_minerals(launch, changed, temper):
    wire = launch("--temper", temper).connect()
    wire.start(changed("mini_games/CollectMineralsAndGas", time_limit_loops=1 << 18))
    full = contents(wire)
    workers, field, geyser = wire.units(SCV), wire.units(FIELD)[0], wire.units(GEYSER)[0]
    wire.order(workers[1:], GATHER, target=field)
    step_until(wire, lambda: wire.money()[0] >= 75)
    assert wire.order(workers[0], BUILD_REFINERY, target=geyser) == 1
    step_until(wire, lambda: any(one.vespene_contents for one in wire.units(REFINERY)))
    wire.order(workers[0], GATHER, target=wire.one(REFINERY))
    step_until(wire, lambda: len(wire.units(FIELD)) < 16, limit=1 << 16, each=200)
    left = contents(wire)
    assert (field.pos.x, field.pos.y) in set(full) - set(left)
    assert left[geyser.pos.x, geyser.pos.y] < 2250
    for _episode in range(2):
        assert wire.ask(restart_game=RESTART).status == sc_pb.in_game
        assert contents(wire) == (left if temper == "spent-minerals" else full)
        assert not wire.units(REFINERY)
    wire.start(changed("mini_games/CollectMineralsAndGas"))
    assert contents(wire) == full


def test_a_replay_has_the_quirks_of_its_episode(launch):
    """A replay must show what the game showed, even in a process without the game's tempers."""
    wire = launch("--temper", "spent-minerals,late-units,stalled-map").connect()
    wire.start("BuildMarines")
    wire.step(400)
    spent = contents(wire)
    assert wire.ask(restart_game=RESTART).status == sc_pb.in_game
    assert contents(wire) == spent
    wire.step(300)
    shown, replay = wire.observe(), wire.replay()
    wire.start(BATTLE)
    wire.step(40)
    battle, battle_replay = wire.observe(), wire.replay()
    watching = launch("--temper", "kind").connect()
    for seen, file in ((shown, replay), (battle, battle_replay)):
        watching.watch(file)
        watching.step(1 << 18)
        assert watching.observe() == seen


@pytest.mark.parametrize(
    ("temper", "fails_from", "last"),
    [("kind", 99, 5), ("map-data:3", 3, 5), ("map-data", 100, 100)],
)
def test_map_data(launch, temper, fails_from, last):
    wire = launch("--temper", temper).connect()
    for number in range(1, last + 1):
        reply = wire.ask(create_game=create_request("MoveToBeacon"))
        fails = number >= fails_from
        assert (reply.create_game.error == CreateError.InvalidMapData) == fails
        assert reply.create_game.HasField("error") == fails
        if not fails:
            assert wire.ask(join_game=JOIN).status == sc_pb.in_game
        assert reply.status == (sc_pb.in_game if fails else sc_pb.init_game)
    assert wire.step(8).step.simulation_loop == 8, "the last game is played as before"


@pytest.mark.parametrize("temper", ["kind", "map-crash"])
def test_map_crash(launch, temper):
    game = launch("--temper", temper)
    wire = game.connect()
    wire.start(json.dumps(EMPTY_MAP | {"made_with_build": BASE_BUILD}).encode())
    newer = json.dumps(EMPTY_MAP | {"made_with_build": BASE_BUILD + 1}).encode()
    created = wire.ask(create_game=create_request(newer))
    if temper == "kind":
        assert created.create_game.error == CreateError.InvalidMapData
        assert f"newer than this one ({BASE_BUILD})" in created.create_game.error_details
        return
    assert created.status == sc_pb.init_game
    wire.send(join_game=JOIN)
    code, said = ends(game)
    assert (code, "Error signal: '11'" in said) == (-signal.SIGSEGV, True)


@pytest.mark.parametrize("temper", ["kind", "no-player"])
def test_no_player(launch, temper):
    wire = launch("--temper", temper).connect()
    wire.start()
    created = wire.ask(create_game=create_request(GARBAGE))
    if temper == "kind":
        assert created.create_game.error == CreateError.InvalidMapData
        return
    assert (created.create_game.HasField("error"), created.status) == (False, sc_pb.init_game)
    for _ in range(2):
        joined = wire.ask(join_game=JOIN)
        assert (joined.join_game.player_id, joined.status) == (0, sc_pb.launched)
        assert joined.join_game.HasField("player_id")
        for request in ({"observation": OBSERVE}, {"step": STEP}, {"restart_game": RESTART}):
            assert wire.ask(**request).error == ["A game has not been started yet"]
    # The error for garbage differs from the error for a map with a mistake.
    wrong = wire.ask(create_game=create_request(json.dumps(EMPTY_MAP | {"fog": 1}).encode()))
    assert "map.fog" in wrong.create_game.error_details
    wire.start()


@pytest.mark.parametrize("temper", ["kind", "fatal-close"])
@pytest.mark.parametrize("close", ["close frame", "end of file", "while it waits"])
def test_fatal_close(launch, temper, close):
    game = launch("--temper", temper)
    if close == "while it waits":
        _leave_while_it_waits(game)
    else:
        wire = game.connect()
        wire.start()
        payload = sc_pb.Request(step=STEP).SerializeToString()
        frames = bytes([0x82, 0x80 | len(payload)]) + bytes(4) + payload
        frames += bytes([0x88, 0x80]) + bytes(4) if close == "close frame" else b""
        game.process.send_signal(signal.SIGSTOP)  # a stopped process later reads all bytes at once
        wire.socket.sendall(frames)
        wire.socket.close()
        game.process.send_signal(signal.SIGCONT)
    if temper == "kind":
        assert game.connect().ask(ping=PING).status == sc_pb.in_game
        return
    code, said = ends(game)
    assert code == -signal.SIGSEGV
    pending = 10 if close == "while it waits" else 12
    assert PENDING.format(pending) in said


def test_no_crash_if_nothing_is_due(launch):
    game = launch("--temper", "fatal-close")
    for _ in range(3):
        wire = game.connect()
        assert wire.ask(ping=PING).status == sc_pb.launched
        wire.close()
    wire = game.connect()
    wire.ask(ping=PING)
    wire.socket.close()
    quits = game.connect()
    quits.send(quit=sc_pb.RequestQuit())
    quits.socket.close()
    assert game.process.wait(TIMEOUT_S) == 0


@pytest.mark.parametrize(
    ("temper", "number"), [("kind", signal.SIGABRT), ("fatal-close", signal.SIGSEGV)]
)
def test_a_crash_and_its_core_file(launch, temper, number, limited, in_tmp_path):
    """Without the temper `fatal-close`, the game turns its core file off."""
    may_dump = resource.getrlimit(resource.RLIMIT_CORE)[1] != 0
    with limited("CORE", 1 << 16 if may_dump else 0):
        game = launch("--temper", temper)
    wire = game.connect()
    wire.start()
    wire.send(debug=sc_pb.RequestDebug(debug=[CRASH]))
    end = os.waitid(os.P_PID, game.process.pid, os.WEXITED | os.WNOWAIT)
    assert end is not None
    dumps = may_dump and temper == "fatal-close"
    assert (end.si_status, end.si_code) == (number, os.CLD_DUMPED if dumps else os.CLD_KILLED)


def _leave_while_it_waits(game: GameProcess) -> None:
    wire = game.connect()
    wire.start(realtime=True)
    wire.send(observation=sc_pb.RequestObservation(game_loop=1 << 16))
    assert is_silent(wire)
    wire.socket.close()


def test_a_fatal_close_that_spins(launch, wait_for):
    game = launch("--temper", "fatal-close:spin")
    _leave_while_it_waits(game)
    assert game.process.stdout.readline() == PENDING.format(10)
    times = psutil.Process(game.process.pid).cpu_times
    before_s = times().user
    wait_for(lambda: times().user > before_s + 0.3)
    assert game.process.poll() is None


def test_a_fatal_close_that_floods(launch):
    game = launch("--temper", "fatal-close:flood")
    _leave_while_it_waits(game)
    said = [game.process.stdout.readline() for _ in range(5000)]
    assert said[0] == PENDING.format(10)
    assert len(set(said[2:])) == 1
    assert game.process.poll() is None


@pytest.mark.parametrize("temper", ["error-box", "error-box,map-crash", "error-box,fatal-close"])
def test_error_box(launch, temper):
    game = launch("--temper", temper)
    wire = game.connect()
    if "map-crash" in temper:
        newer = json.dumps(EMPTY_MAP | {"made_with_build": BASE_BUILD + 1}).encode()
        wire.ask(create_game=create_request(newer))
        wire.send(join_game=JOIN)
    else:
        wire.start()
        wire.send(debug=sc_pb.RequestDebug(debug=[CRASH]))
    wire.send(ping=PING)
    assert is_silent(wire)
    assert psutil.Process(game.process.pid).status() == psutil.STATUS_SLEEPING
    assert game.process.poll() is None


@pytest.mark.parametrize(
    ("temper", "appear_at"), [("kind", 0), ("late-units", 12), ("late-units:30", 30)]
)
def test_late_units(launch, temper, appear_at):
    wire = launch("--temper", temper).connect()
    wire.start(BATTLE)
    for episode in range(2):
        if episode:
            assert wire.ask(restart_game=RESTART).status == sc_pb.in_game
        for loop in range(appear_at):
            assert not wire.observe().raw_data.units, loop
            wire.step()
        units = wire.observe().raw_data.units
        assert sorted(unit.owner for unit in units) == [1, 1, 1, 2, 2, 2]
        wire.step(20)
        enemies = [unit for unit in wire.observe().raw_data.units if unit.owner == 2]
        assert {unit.pos.x for unit in enemies}.isdisjoint(
            unit.pos.x for unit in units if unit.owner == 2
        ), "the enemies attack"


@pytest.mark.parametrize("temper", ["kind", "stalled-map"])
def test_stalled_map(launch, temper):
    wire = launch("--temper", temper).connect()

    def enemies() -> list[int]:
        return [unit.tag for unit in wire.observe().raw_data.units if unit.owner == 2]

    wire.start("DefeatZerglingsAndBanelings")
    for _ in range(2):
        wire.kill(enemies()[1:])
        wire.step(2)
        assert len(enemies()) == 1
        wire.kill(enemies())
        wire.step(2)
        assert len(enemies()) == 10
    wire.kill(enemies())
    wire.step(400)
    assert bool(enemies()) == (temper == "kind")
    wire.start("DefeatRoaches")
    wire.kill(enemies())
    wire.step(2)
    assert len(enemies()) == 4, "other maps do not stall"


def test_slowing(launch, changed, wait_for):
    """A loop's usual CPU time is doubled 0.11 s after launch, and tenfold 1 s after launch."""

    def begin(temper: str) -> tuple[psutil.Process, Wire]:
        game = launch("--temper", temper)
        wire = game.connect()
        wire.socket.settimeout(10 * TIMEOUT_S)  # a busy machine lets the process age more
        wire.start(changed("mini_games/CollectMineralsAndGas", time_limit_loops=1 << 18))
        wire.order(wire.units(SCV), GATHER, target=wire.units(FIELD)[0])
        wire.step(1000)  # the first loops cost more
        return psutil.Process(game.process.pid), wire

    def cpu_s(process: psutil.Process, wire: Wire) -> float:
        before = process.cpu_times()
        wire.step(3000)
        after = process.cpu_times()
        return after.user + after.system - before.user - before.system

    kind_s = cpu_s(*begin("kind"))
    before_s = time.monotonic()
    process, wire = begin("slowing:0.00003")
    began_s = time.monotonic()
    wait_for(lambda: time.monotonic() > began_s + 1.0)
    most_age_s = time.monotonic() - before_s
    early_s = cpu_s(process, wire)
    wait_for(lambda: time.monotonic() > began_s + 2.0 * most_age_s)
    assert early_s > 2.0 * kind_s
    assert cpu_s(process, wire) > 1.3 * early_s


def _waits_for_a_player(game: GameProcess) -> Wire:
    """A client whose join_game waits for another player."""
    wire = game.connect()
    wire.ask(create_game=sc_pb.RequestCreateGame(local_map=DUEL, player_setup=TWO))
    wire.send(join_game=join_request(free_ports(4)))
    assert is_silent(wire)
    return wire


def test_crowd(launch):
    games = [launch("--temper", "crowd:2") for _ in range(2)]
    waiting = _waits_for_a_player(games[0])
    began_s = time.monotonic()
    launch("--temper", "crowd:2")
    assert time.monotonic() - began_s >= 2.0, "a launch beside a join"
    began_s = time.monotonic()
    games[1].connect().start()
    assert time.monotonic() - began_s >= 2.0, "a join beside a join"
    waiting.close()
    quick = launch("--temper", "crowd:1000")
    waiting = _waits_for_a_player(quick)
    quick.process.kill()
    quick.process.wait(TIMEOUT_S)
    launch("--temper", "crowd:1000").connect().start()


def test_others_of_a_crowd_do_not_hold_up_a_kind_game(launch):
    waiting = _waits_for_a_player(launch("--temper", "crowd:1000"))
    launch("--temper", "kind").connect().start()
    waiting.close()


def test_same_instant(launch, executable, installation):
    first = launch("--temper", "same-instant:1000")
    second = (executable, "-port", *free_ports(1), "-dataDir", installation)
    done = run(*second, "--temper", "same-instant", timeout_s=TIMEOUT_S)
    assert done.returncode == 1
    assert "in the same instant" in done.stdout
    launch("--temper", "kind")
    first.process.kill()
    first.process.wait(TIMEOUT_S)
    launch("--temper", "same-instant")


def test_the_same_bytes_under_a_seed(launch):
    """With any temper, an episode depends only on its seed and actions, except in real time."""

    def played(wire: Wire) -> list[bytes]:
        replies = []
        for name in ("DefeatZerglingsAndBanelings", "BuildMarines", BATTLE):
            wire.start(name, seed=3)
            for _episode in range(2):
                for _ in range(30):
                    wire.send(step=sc_pb.RequestStep(count=8))
                    wire.send(observation=OBSERVE)
                    replies += [wire.receive(), wire.receive()]
                wire.ask(restart_game=RESTART)
        return replies

    games = [launch("--temper", "all") for _ in range(2)]
    assert played(games[0].connect()) == played(games[1].connect())
