"""The compiled step path returns what pure Python returns, or leaves the step to pure Python.

The script `scripts/compare_paths.py` runs such comparisons for longer.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
import threading
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compare_paths import (
    REQUEST_ID,
    a_reply,
    a_step,
    compare,
    difference,
    frame,
    messages_of,
    step_difference,
)
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool import commands
from sc2pool.commands import as_actions
from sc2pool.config import Limits
from sc2pool.deadline import Deadline
from sc2pool.game.game import Game
from sc2pool.game.program.installation import find_installation, find_map
from sc2pool.game.wire import frames
from sc2pool.platform import LINUX, WINDOWS
from sc2pool.protocol import compiled, replies
from sc2pool.protocol.observed import Observed
from sc2pool.protocol.requests import step_burst
from sc2pool.tasks.registry import resolve_task
from sc2pool.units import Kind, health, select
from tests.support.programs import run
from tests.unit.conftest import in_worker_loop, needs_compiled, printed_by

OWN_MARINES = Kind("Marine")

waits = pytest.mark.skipif(WINDOWS, reason="it waits with epoll, in Linux's event loop alone")


def reply(**fields: object) -> sc_pb.Response:
    message = sc_pb.Response.FromString(a_reply())
    for name, value in fields.items():
        setattr(message, name, value)
    return message


def accepts(message: sc_pb.Response) -> bool:
    return compiled.fast.observation(message.SerializeToString(), REQUEST_ID) is not None


@needs_compiled
@pytest.mark.parametrize("n_units", [0, 1, 2, 127, 128, 129, 500])
def test_usual_replies_are_accepted(n_units):
    payload = a_reply(n_units)
    plain = compiled.fast.observation(payload, REQUEST_ID)
    assert plain.payload is payload
    assert (plain.status, plain.error) == (sc_pb.in_game, ())
    assert difference(payload) is None


@needs_compiled
def test_damaged_replies():
    found, verdicts = compare([a_reply(), a_reply(0), a_reply(2)], 20_000, seed=3)
    assert found == []
    assert verdicts["accepted"] > 2_000
    assert verdicts["left"] > 10_000


@needs_compiled
def test_messages_of_the_real_game(recorded):
    for _, answer in recorded:
        message = sc_pb.Response(id=REQUEST_ID, status=sc_pb.in_game, observation=answer)
        assert accepts(message)
        assert difference(message.SerializeToString()) is None
        message.observation.observation.raw_data.ClearField("map_state")
        found, verdicts = compare([message.SerializeToString()], 200, seed=4)
        assert found == []
        assert verdicts["accepted"] > 10


@needs_compiled
@pytest.mark.parametrize("name", ["CollectMineralShards", "DefeatRoaches"])
@in_worker_loop(1)
async def test_messages_of_the_stand_in(standin_dir, name):
    installation = find_installation(standin_dir)
    game = await Game.launch(installation, Limits(), deadline=Deadline.after(60))
    with closing(game):
        setup = replace(resolve_task(name).game_setup(), realtime=False)
        await game.start_episode(setup, find_map(installation, name), 5)
        observed = await game.observe()
        for number in range(60):
            (marines,) = select(observed, OWN_MARINES)
            assert health(marines).min() > 0
            order = commands.attack(marines.tags, (20 + number % 7, 30))
            observed = (await game.step(as_actions([order]), 24)).observed
            assert observed.plain is not None
            # `Wire` does the whole step, if the event loop may be blocked.
            assert (observed.plain.simulation_loop > 0) == LINUX
            payload = observed.plain.payload
            request_id = sc_pb.Response.FromString(payload).id
            assert difference(payload, request_id) is None
        assert observed.game_loop == 60 * 24


@needs_compiled
def test_unusual_messages_are_left_to_pure_python():
    assert accepts(reply())
    assert not accepts(reply(id=REQUEST_ID + 1))
    assert not accepts(reply(status=sc_pb.ended))
    assert not accepts(sc_pb.Response(id=REQUEST_ID, status=sc_pb.in_game, error=["no"]))
    assert not accepts(
        sc_pb.Response(id=REQUEST_ID, status=sc_pb.in_game, step=sc_pb.ResponseStep())
    )
    for field in ("id", "status", "observation"):
        message = reply()
        message.ClearField(field)
        assert not accepts(message)
    for field in ("player_common", "raw_data", "game_loop"):
        message = reply()
        message.observation.observation.ClearField(field)
        assert not accepts(message)
    for field in ("tag", "unit_type", "alliance", "pos"):
        message = reply()
        message.observation.observation.raw_data.units[2].ClearField(field)
        assert not accepts(message)
    message = reply()
    message.observation.player_result.add(player_id=1, result=sc_pb.Victory)
    assert not accepts(message)
    message = reply()
    message.observation.action_errors.add(unit_tag=1)
    assert not accepts(message)
    message = reply()
    message.observation.observation.game_loop = replies.LAST_LOOP + 1
    assert not accepts(message)
    assert compiled.fast.observation(a_reply() + a_reply(), REQUEST_ID) is None
    assert compiled.fast.observation(b"", REQUEST_ID) is None


@needs_compiled
@pytest.mark.parametrize(
    "name", ["pos.x", "pos.y", "pos.z", "health", "shield", "energy", "weapon_cooldown"]
)
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_left_to_pure_python(name, number):
    message = reply()
    owner = message.observation.observation.raw_data.units[1]
    *inside, last = name.split(".")
    for part in inside:
        owner = getattr(owner, part)
    setattr(owner, last, number)
    assert not accepts(message)


@needs_compiled
def test_rows_of_other_observations_are_refused():
    plain = compiled.fast.observation(a_reply(3), REQUEST_ID)
    for row in (-1, 3):
        with pytest.raises(IndexError):
            plain.numbers("health", [row])
    with pytest.raises(ValueError):
        plain.numbers("energy", [0])


def test_units_can_be_read_and_changed_on_both_paths(monkeypatch):
    for path in ("this one", "pure Python"):
        if path == "pure Python":
            monkeypatch.setattr(compiled, "fast", None)
        payload = a_reply()
        read = compiled.fast.observation(payload, REQUEST_ID) if compiled.fast else None
        observed = (
            Observed.of(sc_pb.Response.FromString(payload).observation)
            if read is None
            else Observed(payload, read)
        )
        (units,) = select(observed, OWN_MARINES)
        units.positions[:] = 5.0
        numbers = health(units)
        numbers[:] = 1.0
        assert len(numbers) == len(units) == len(units.messages)


@needs_compiled
def test_a_clone_that_hides_it_says_so_once(tmp_path):
    package = Path(compiled.__file__).parents[1]
    clone, installed = tmp_path / "clone", tmp_path / "installed"
    shutil.copytree(package, clone / "sc2pool", ignore=shutil.ignore_patterns("_fast.*"))
    (installed / "sc2pool").mkdir(parents=True)
    (installed / "sc2pool" / "_fast.so").touch()
    (installed / "sc2pool-0.dist-info").mkdir()
    (installed / "sc2pool-0.dist-info" / "METADATA").write_text("Name: sc2pool\nVersion: 0\n")
    program = "from sc2pool.protocol.compiled import warn_if_hidden as say; say(); say()"
    environment = {**os.environ, "PYTHONSAFEPATH": "", "PYTHONPATH": str(installed)}
    done = run(sys.executable, "-c", program, cwd=clone, env=environment)
    assert done.stderr.count("without the compiled step path") == 1
    assert f"{clone / 'sc2pool'}, without" in done.stderr
    assert f"not from {installed / 'sc2pool'}, which has it" in done.stderr


@pytest.mark.parametrize("value", ["0", "1"])
def test_an_environment_variable_leaves_it_out(value, monkeypatch):
    monkeypatch.setenv("SC2POOL_PURE", value)
    path = "compiled" if value == "0" and find_spec("sc2pool._fast") else "pure Python"
    program = "from sc2pool.protocol import compiled; print(compiled.STEP_PATH)"
    assert printed_by(program) == f"{path}\n"


# ---- steps --------------------------------------------------------------------------------------


@needs_compiled
@pytest.mark.parametrize("first_id", [1, 127, 128, 16_383, 16_384, 2**31 - 2, 2**31 - 1])
@pytest.mark.parametrize("n_commands", [0, 1, 9, 3000])
@pytest.mark.parametrize("loops", [8, 300])
def test_the_requests_of_a_step_are_the_same_bytes(first_id, n_commands, loops):
    actions = as_actions(
        commands.attack([2**33 + n, 5], (0.1 * n, 7.5) if n % 2 else n) for n in range(n_commands)
    )
    expected = step_burst(actions, loops)
    for number, request in enumerate(expected):
        request.id = (first_id + number) % 2**31
    serialized = [action.SerializeToString() for action in actions]
    assert compiled.fast.step_frames(first_id, serialized, loops) == frames(expected)


@needs_compiled
@pytest.mark.parametrize("n_units", [0, 1, 6, 900])
@pytest.mark.parametrize("n_actions", [0, 1, 200])
def test_usual_steps_are_accepted(n_units, n_actions):
    data = a_step(n_units, n_actions)
    plain = compiled.fast.step_replies(data, REQUEST_ID, n_actions > 0)
    assert (plain.n_results, plain.simulation_loop) == (n_actions, 300)
    if n_actions:
        assert step_difference(data) is None
    assert compiled.fast.step_replies(data[:-1], REQUEST_ID, n_actions > 0) is None
    assert compiled.fast.step_replies(data + b"\x82", REQUEST_ID, n_actions > 0) is None


@needs_compiled
def test_damaged_steps():
    samples = [a_step(), a_step(0), a_step(2)]
    found, verdicts = compare(samples, 20_000, seed=5, steps=True)
    assert found == []
    assert verdicts["accepted"] > 1_000
    assert verdicts["left"] > 10_000


@needs_compiled
def test_an_action_that_failed_is_left_to_pure_python():
    action, *others = messages_of(a_step())
    failed = sc_pb.Response.FromString(action)
    failed.action.result[1] = 5
    data = b"".join(map(frame, (failed.SerializeToString(), *others)))
    assert compiled.fast.step_replies(data, REQUEST_ID, acts=True) is None


AN_ACTION = sc_pb.Action(action_raw={"unit_command": {"ability_id": 16}}).SerializeToString()


class Answering(threading.Thread):
    """The other end of a socket: it waits for a request, and then sends these byte strings."""

    def __init__(self, parts: list[bytes], *, closes: bool = False) -> None:
        super().__init__()
        self.sock, self.other = socket.socketpair()
        self.sock.setblocking(False)
        self.parts, self.closes = parts, closes
        self.got = b""

    def __enter__(self) -> Answering:
        self.start()
        return self

    def run(self) -> None:
        self.got = self.other.recv(1 << 16)
        for part in self.parts:
            self.other.sendall(part)
        if self.closes:
            self.other.shutdown(socket.SHUT_RDWR)

    def __exit__(self, *_: object) -> None:
        self.join()
        self.sock.close()
        self.other.close()


def step_on(answering: Answering, deadline: Deadline, loop: int = -1) -> Any:
    wire = compiled.fast.Wire(answering.sock.fileno(), loop)
    return wire.step(REQUEST_ID, [AN_ACTION], 8, deadline.instant_s)


def requests() -> bytes:
    """The requests that `step_on` sends."""
    return compiled.fast.step_frames(REQUEST_ID, [AN_ACTION], 8)


@needs_compiled
@pytest.mark.parametrize("n_actions", [0, 1])
def test_a_step_in_turns_is_begun_and_finished(n_actions):
    data = a_step(3, n_actions)
    first, rest = data[:50], data[50:]
    with Answering([first]) as answering:
        wire = compiled.fast.Wire(answering.sock.fileno(), -1)
        actions = [AN_ACTION] * n_actions
        assert wire.begin(REQUEST_ID, actions, 8)
        answering.join()
        assert answering.got == compiled.fast.step_frames(REQUEST_ID, actions, 8)
        assert wire.finish() is None
        assert wire.taken() == (len(answering.got), answering.got, first)
        answering.other.sendall(rest)
        plain = wire.finish()
        assert plain.n_results == n_actions
        assert plain.payload == messages_of(data)[-1]


@needs_compiled
@waits
@pytest.mark.parametrize("part_bytes", [1, 7, 4096, 1 << 20])
@pytest.mark.parametrize("n_units", [3, 1000])
def test_replies_in_parts(n_units, part_bytes):
    data = a_step(n_units)
    part_bytes = max(part_bytes, len(data) // 2000)
    parts = [data[at : at + part_bytes] for at in range(0, len(data), part_bytes)]
    with Answering(parts) as answering:
        plain = step_on(answering, Deadline.after(30))
        assert isinstance(plain.simulation_loop, int)
        assert plain.payload == messages_of(data)[2]
    assert answering.got == requests()


@needs_compiled
@waits
def test_a_large_reply_needs_more_room():
    action, step, observed = messages_of(a_step())
    message = sc_pb.Response.FromString(observed)
    message.observation.observation.raw_data.map_state.visibility.data = bytes(1_000_000)
    data = b"".join(map(frame, (action, step, message.SerializeToString())))
    with Answering([data]) as answering:
        assert len(step_on(answering, Deadline.after(30)).payload) > 1_000_000


@needs_compiled
@waits
@pytest.mark.parametrize(
    ("parts", "closes"),
    [
        ([a_step()[:40]], True),
        ([a_step() + b"\x82\0"], False),
        ([b"\x89\0"], False),
        ([a_step(0).replace(b"\x82", b"\x02", 1)], False),
    ],
    ids=["the end", "a surplus frame", "a ping", "a fragment"],
)
def test_other_replies_are_handed_over(parts, closes):
    with Answering(parts, closes=closes) as answering:
        sent = requests()
        assert step_on(answering, Deadline.after(30)) == (len(sent), sent, b"".join(parts))


@needs_compiled
def test_bytes_before_the_request_are_handed_over():
    with Answering([]) as answering:
        answering.other.sendall(b"surplus")
        assert step_on(answering, Deadline.after(30)) == (0, requests(), b"surplus")
        answering.sock.send(b"let it end")


@needs_compiled
def test_the_deadline_and_the_event_loop_end_the_wait():
    with Answering([]) as answering:
        assert step_on(answering, Deadline.after(0)) == (len(requests()), requests(), b"")
    readable, other = socket.socketpair()
    with Answering([]) as answering, readable, other:
        other.send(b"work")
        outcome = step_on(answering, Deadline.after(30), readable.fileno())
        assert outcome == (len(requests()), requests(), b"")
