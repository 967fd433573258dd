"""How the processes of two players find each other, and what they do if they cannot."""

from __future__ import annotations

import asyncio
import functools
import socket
from collections.abc import Callable, Coroutine

import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.multiplayer import meeting
from sc2standin.multiplayer.match import AskedLoops
from sc2standin.multiplayer.meeting import Invitation, begin_meeting
from tests.support.duels import TWO, free_ports, join_request

CREATE = sc_pb.RequestCreateGame(player_setup=TWO, random_seed=1)
NetworkError = sc_pb.ResponseJoinGame.NetworkError


def _invitation(port: int, create: sc_pb.RequestCreateGame | None, **fields) -> Invitation:
    named = {"address": "127.0.0.1", "port": port, "join": join_request([port, 1, 2, 3])}
    return Invitation(**named | fields, create=create)


def in_event_loop(test: Callable[..., Coroutine[None, None, None]]) -> Callable[..., None]:
    """A test that is a coroutine, as a function."""

    @functools.wraps(test)
    def run(*args: object, **kwargs: object) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


async def _done(*invitations: Invitation) -> list[meeting.Meeting]:
    wakes = [asyncio.Event() for _ in invitations]
    met = [begin_meeting(one, wake.set) for one, wake in zip(invitations, wakes, strict=True)]
    for wake in wakes:
        await asyncio.wait_for(wake.wait(), 10)
    return met


@in_event_loop
async def test_both_know_the_same_and_what_one_sends_the_other_gets():
    (port,) = free_ports(1)
    named = {"join": join_request([port, 1, 2, 3], player_name="guest")}
    host, guest = await _done(_invitation(port, CREATE), _invitation(port, None, **named))
    assert (host.problem, guest.problem) == (None, None)
    assert (host.is_host, guest.is_host) == (True, False)
    assert guest.create == CREATE
    assert host.other_join.player_name == "guest"
    assert guest.other_join == join_request([port, 1, 2, 3])
    host.link.send(7)
    host.link.send(8, b"request")
    assert [await guest.link.next_frame() for _ in range(2)] == [(7, b""), (8, b"request")]
    host.link.close()
    with pytest.raises(ConnectionError):
        await guest.link.next_frame()
    guest.link.close()


@pytest.mark.parametrize("create", [CREATE, None], ids=["host", "guest"])
@in_event_loop
async def test_nobody_comes(monkeypatch, create):
    monkeypatch.setattr(meeting, "JOIN_TIMEOUT_S", 0.1)
    (port,) = free_ports(1)
    (met,) = await _done(_invitation(port, create))
    assert met.problem is not None
    assert met.problem[0] == NetworkError
    assert "did not come" in met.problem[1]
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


@in_event_loop
async def test_a_port_that_is_taken():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        (met,) = await _done(_invitation(port, CREATE))
    assert met.problem is not None
    assert met.problem[0] == NetworkError
    assert str(port) in met.problem[1]


@pytest.mark.parametrize("address", ["a" * 300, "\0", "256.256.256.256"])
@in_event_loop
async def test_no_such_address(address):
    (port,) = free_ports(1)
    (met,) = await _done(_invitation(port, CREATE, address=address))
    assert met.problem is not None
    assert met.problem[0] == NetworkError


def test_a_loop_is_played_once_both_have_asked():
    asked = AskedLoops((1, 2))
    assert asked.ask(1, 8) == 8
    assert asked.playable == 0
    assert asked.ask(2, 3) == 3
    assert asked.playable == 3
    assert asked.ask(1, 4) == 8  # what was asked for is not taken back
    asked.leave(2)
    assert asked.playable == 8
