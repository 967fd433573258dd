"""Tests a process's socket, its clock if it is stopped in real time, and a step's CPU time."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.command import main
from tests.support.programs import run

TIMEOUT_S = 20


def test_the_process_keeps_the_pid_of_the_script(shared_game):
    command_line = Path(f"/proc/{shared_game.process.pid}/cmdline").read_bytes()
    assert b"sc2standin" in command_line


def test_a_taken_port_is_said_and_ends_the_process(shared_game, executable, tmp_path):
    where = ("-listen", "127.0.0.1", "-port", shared_game.port, "-dataDir", tmp_path)
    second = run(executable, *where, timeout_s=TIMEOUT_S)
    assert second.returncode != 0
    assert "Failed to create the socket." in second.stdout


@pytest.mark.parametrize(
    ("address", "port", "told"),
    [
        ("", "5000", "-listen must be an address, not an empty text"),
        ("127.0.0.1", "70000", "-port must be 1 to 65535, not 70000"),
    ],
)
def test_an_address_or_a_port_that_is_none(capsys, address, port, told):
    with pytest.raises(SystemExit):
        main(["-listen", address, "-port", port])
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"path": "/elsewhere"}, 404),
        ({"headers": "Origin: http://example.org\r\n"}, 403),
        ({"headers": "origin: null\r\n"}, 403),
        ({"headers": "Origin: http://127.0.0.1:1\r\n"}, 403),
        ({"headers": "Origin: http://localhost:{port}\r\nOrigin: http://a.org:{port}\r\n"}, 403),
    ],
)
def test_refused_handshakes(shared_game, options, status):
    told = {name: text.format(port=shared_game.port) for name, text in options.items()}
    with pytest.raises(Exception) as refusal:
        shared_game.connect(**told)
    assert refusal.value.status == status
    assert shared_game.connect().ask(ping=sc_pb.RequestPing()).HasField("ping")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_client_may_state_the_servers_own_address_as_its_origin(shared_game, host):
    """The websocket client of pysc2 and SMAC sends such an Origin header."""
    wire = shared_game.connect(headers=f"Origin: http://{host}:{shared_game.port}\r\n")
    assert wire.ask(ping=sc_pb.RequestPing()).HasField("ping")


def test_a_request_without_upgrade_does_not_take_the_place(shared_game):
    with socket.create_connection(("127.0.0.1", shared_game.port), timeout=TIMEOUT_S) as probe:
        probe.sendall(b"GET /sc2api HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 101 " not in probe.recv(4096)
    assert shared_game.connect().ask(ping=sc_pb.RequestPing()).HasField("ping")


def test_one_client_at_a_time_and_the_game_outlives_it(shared_game):
    first = shared_game.connect()
    first.start()
    with pytest.raises(Exception) as refusal:
        shared_game.connect()
    assert refusal.value.status == 503
    assert first.step(3).step.simulation_loop == 3
    first.close()
    reply = shared_game.connect().ask(observation=sc_pb.RequestObservation())
    assert reply.observation.observation.game_loop == 3


@pytest.mark.parametrize("payload", [b"\xff\xff\xff", b"\x0a\x05ab", b"", b"\x98\x06\x05"])
def test_garbage_is_answered_with_an_error(shared_game, payload):
    wire = shared_game.connect()
    wire.send_frame(payload)
    reply = wire.reply()
    assert reply.error
    assert reply.status == sc_pb.launched
    assert reply.WhichOneof("response") is None
    assert wire.ask(ping=sc_pb.RequestPing()).HasField("ping")


def test_text_and_fragments_are_requests_too_and_pings_are_answered(shared_game):
    wire = shared_game.connect()
    request = sc_pb.Request(ping=sc_pb.RequestPing()).SerializeToString()
    wire.send_frame("héllo".encode(), opcode=1)
    wire.send_frame(request, opcode=1)
    for opcode in (1, 2):  # the fragments are sent as text and as bytes
        wire.send_frame(request[:1], opcode=opcode, fin=False)
        wire.send_frame(request[1:], opcode=0)
    garbage, *replies = (wire.reply() for _ in range(4))
    assert garbage.error and all(reply.HasField("ping") for reply in replies)
    wire.send_frame(b"there?", opcode=9)
    assert wire.receive() == b"there?"


def test_no_request_waits_for_a_later_one(shared_game):
    """A ping, or half a message, in the same packet must not hold up a whole request."""
    wire = shared_game.connect()
    request = sc_pb.Request(ping=sc_pb.RequestPing()).SerializeToString()
    whole, mask = bytes([0x82, 0x80 | len(request)]), bytes(4)
    behind = [bytes([0x89, 0x80]) + mask, bytes([0x02, 0x80]) + mask]
    wire.socket.sendall(whole + mask + request + behind[0])
    replies = {wire.receive(), wire.receive()}
    assert b"" in replies
    assert any(sc_pb.Response.FromString(reply).HasField("ping") for reply in replies)
    wire.socket.sendall(whole + mask + request + behind[1])
    assert wire.reply().HasField("ping")


def test_pipelined_requests_are_answered_in_order(shared_game):
    wire = shared_game.connect()
    wire.start()
    for number in range(60):
        wire.send(step=sc_pb.RequestStep(count=2), id=2 * number)
        wire.send(observation=sc_pb.RequestObservation(), id=2 * number + 1)
    for number in range(60):
        stepped, observed = wire.reply(), wire.reply()
        assert (stepped.id, observed.id) == (2 * number, 2 * number + 1)
        assert stepped.step.simulation_loop == 2 * number + 2
        assert observed.observation.observation.game_loop == 2 * number + 2


@pytest.mark.timing
def test_real_time_runs_by_itself_and_waits_for_a_loop(shared_game):
    wire = shared_game.connect()
    began_s = time.monotonic()
    wire.start(realtime=True)
    target = 34
    reply = wire.ask(observation=sc_pb.RequestObservation(game_loop=target))
    elapsed_s = time.monotonic() - began_s
    assert reply.observation.observation.game_loop >= target
    rate = reply.observation.observation.game_loop / elapsed_s
    assert rate == pytest.approx(22.4, rel=0.1)
    # All requests that follow a waiting observation request are answered, after its reply.
    ahead = reply.observation.observation.game_loop + 5
    wire.send(observation=sc_pb.RequestObservation(game_loop=ahead), id=1)
    wire.send(observation=sc_pb.RequestObservation(), id=2)
    wire.send(step=sc_pb.RequestStep(count=1), id=3)
    replies = [wire.reply() for _ in range(3)]
    assert [reply.id for reply in replies] == [1, 2, 3]
    assert replies[0].observation.observation.game_loop >= ahead
    assert replies[2].error


def test_quit_ends_the_process_without_a_reply(game):
    wire = game.connect()
    wire.send(quit=sc_pb.RequestQuit())
    assert game.process.wait(TIMEOUT_S) == 0
    with pytest.raises(ConnectionError):
        wire.receive()


def test_sigterm_is_heard_in_the_middle_of_a_long_step(game, changed, wait_for):
    """The step is half a million loops with hundreds of units, which would take hours."""
    crowd = {"type": "Marine", "owner": 1, "count": 400, "place": "random"}
    wire = game.connect()
    wire.start(changed("mini_games/MoveToBeacon", units=[crowd], time_limit_loops=1 << 19))
    times = psutil.Process(game.process.pid).cpu_times
    before_s = times().user
    wire.send(step=sc_pb.RequestStep(count=1 << 19))
    wait_for(lambda: times().user > before_s + 0.1, TIMEOUT_S)
    game.process.terminate()
    assert game.process.wait(TIMEOUT_S) == 0


def _test_process(kind: debug_pb.DebugTestProcess.Test, delay_ms: int = 0) -> sc_pb.RequestDebug:
    test = debug_pb.DebugTestProcess(test=kind, delay_ms=delay_ms)
    return sc_pb.RequestDebug(debug=[debug_pb.DebugCommand(test_process=test)])


@pytest.mark.parametrize(
    ("kind", "status"),
    [(debug_pb.DebugTestProcess.crash, -signal.SIGSEGV), (debug_pb.DebugTestProcess.exit, 0)],
)
@pytest.mark.parametrize("delay_ms", [0, 50])
def test_crash_and_exit_are_real(game, kind, status, delay_ms):
    wire = game.connect()
    wire.start()
    wire.send(debug=_test_process(kind, delay_ms))
    assert game.process.wait(TIMEOUT_S) == status


def test_a_hung_game_answers_nothing_and_ignores_sigterm(game):
    wire = game.connect()
    wire.start()
    wire.send(debug=_test_process(debug_pb.DebugTestProcess.hang))
    wire.send(ping=sc_pb.RequestPing())
    wire.socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        wire.receive()
    game.process.terminate()
    with pytest.raises(subprocess.TimeoutExpired):
        game.process.wait(0.3)
    game.process.kill()
    assert game.process.wait(TIMEOUT_S) == -signal.SIGKILL


STOP_S = 0.6
"""The duration of 13 loops of real time, in seconds."""


def loop_of(wire: Any, game_loop: int = 0) -> int:
    """The current loop of the game; with `game_loop`, waits until the game has got to that loop."""
    reply = wire.ask(observation=sc_pb.RequestObservation(game_loop=game_loop))
    return int(reply.observation.observation.game_loop)


@pytest.mark.timing
@pytest.mark.parametrize(("after_stop", "fewest", "most"), [("freeze", 0, 1), (None, 13, 15)])
def test_loops_after_a_stop(launch, after_stop, fewest, most):
    game = launch(*([] if after_stop is None else ["--after-stop", after_stop]))
    wire = game.connect()
    wire.start(realtime=True)
    before = loop_of(wire, 5)
    game.process.send_signal(signal.SIGSTOP)
    time.sleep(STOP_S)
    game.process.send_signal(signal.SIGCONT)
    after = loop_of(wire)
    assert fewest <= after - before <= most
    # After the missed loops, the game continues at its usual pace.
    began_s = time.monotonic()
    assert loop_of(wire, after + 9) >= after + 9
    assert time.monotonic() - began_s == pytest.approx(9 / 22.4, abs=0.15)


STEPS = 5
OBSERVE = sc_pb.RequestObservation()


@pytest.fixture
def priced(changed):
    """The content of a mini-game's map on which each step costs CPU time."""
    return lambda name, **step_cost: changed(f"mini_games/{name}", step_cost=step_cost)


@pytest.mark.timing
@pytest.mark.parametrize(("burn_ms", "sleep_ms"), [(20, 0), (0, 25.0)], ids=["burnt", "slept"])
def test_a_step_takes_the_time_told(offline, priced, burn_ms, sleep_ms):
    offline.start(priced("MoveToBeacon", burn_ms=burn_ms, sleep_ms=sleep_ms))
    began_s, cpu_before_s = time.monotonic(), time.thread_time()
    for _ in range(STEPS):
        offline.step(8)
    elapsed_s, cpu_s = time.monotonic() - began_s, time.thread_time() - cpu_before_s
    assert elapsed_s >= STEPS * (burn_ms + sleep_ms) / 1000
    assert STEPS * burn_ms / 1000 <= cpu_s <= STEPS * burn_ms / 1000 + 0.1


@pytest.mark.timing
@pytest.mark.parametrize("name", ["Canned", "MoveToBeacon"])
def test_only_steps_that_are_played_cost_anything(offline, priced, name):
    offline.start(priced(name, burn_ms=5, sleep_ms=50))
    began_s = time.monotonic()
    for _ in range(5):
        offline.observe()
        offline.act()
    assert time.monotonic() - began_s < 0.05
    offline.step(8)
    assert time.monotonic() - began_s >= 0.055
    offline.step(2**31)
    began_s = time.monotonic()
    for _ in range(5):
        assert "already ended" in offline.step().error[0]
    assert time.monotonic() - began_s < 0.05


def test_a_price_changes_no_reply(session_for, priced):
    played = []
    for cost in ({}, {"burn_ms": 1}, {"sleep_ms": 1, "burn_ms": 0.5}):
        session = session_for()
        session.start(priced("DefeatRoaches", **cost), seed=5)
        replies = []
        for _ in range(20):
            replies.append(session.ask_bytes(step=sc_pb.RequestStep(count=8), id=3))
            replies.append(session.ask_bytes(observation=OBSERVE, id=4))
        played.append(replies)
    assert played[0] == played[1] == played[2]


def test_sigterm_is_heard_between_dear_steps(game, priced):
    """After SIGTERM no further step is played; the steps before it have been answered in order."""
    wire = game.connect()
    wire.start(priced("MoveToBeacon", sleep_ms=200))
    for number in range(100):  # 20 s
        wire.send(step=sc_pb.RequestStep(count=1), id=number)
    for number in range(2):
        assert wire.reply().id == number
    game.process.terminate()
    assert game.process.wait(3) == 0
