"""Tests the channel between trainer and worker: whole messages, time limits, and a peer's end."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from sc2pool.platform import WINDOWS
from sc2pool.pool.ipc import Channel, ChannelClosedError, for_trainer, pickle_for_worker
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon


@pytest.fixture
def ends():
    one, other = socket.socketpair()
    pair = Channel(one, 0.2), Channel(other)
    yield pair
    for end in pair:
        end.close()


def receive(channel: Channel, number: int) -> list:
    received = []
    while len(received) < number:
        assert channel.readable(30.0)
        received += channel.receive()
    return received


def test_messages_arrive_whole_and_in_order(ends):
    sent = [{"number": number, "cargo": bytes(number)} for number in range(50)]
    for message in sent:
        ends[0].send(message)
    assert receive(ends[1], 50) == sent


def test_readable_once_a_message_is_there(ends):
    assert not ends[1].readable(0.0)
    ends[0].send("a message")
    assert ends[1].readable(30.0)
    receive(ends[1], 1)
    ends[0].close()
    assert ends[1].readable(30.0), "the end is something, too"


def test_half_a_message_is_kept_until_the_rest_comes():
    one, other = socket.socketpair()
    feeder, reader = Channel(one), Channel(other)
    mirror, tap = socket.socketpair()
    Channel(mirror).send("hello")
    raw = tap.recv(1000)
    for byte in raw[:-1]:
        one.send(bytes([byte]))
        assert reader.receive() == []
    one.send(raw[-1:])
    assert reader.receive() == ["hello"]
    for end in (feeder, reader, mirror, tap):
        end.close()


def test_messages_sent_before_the_end_are_received(ends):
    ends[1].send("last words")
    ends[1].close()
    assert ends[0].receive() == ["last words"]
    with pytest.raises(ChannelClosedError, match="end of file"):
        ends[0].receive()


def test_sending_to_the_dead_is_told(ends):
    ends[1].close()
    tries = 100 if WINDOWS else 1  # on Windows a send may succeed at first
    with pytest.raises(ChannelClosedError):
        for _ in range(tries):
            ends[0].send("anyone?")


@pytest.mark.timing
def test_a_peer_that_does_not_read_ends_the_channel_in_bounded_time(ends):
    begin_s = time.monotonic()
    with pytest.raises(ChannelClosedError):
        ends[0].send(bytes(20_000_000))
    assert time.monotonic() - begin_s < 2
    with pytest.raises(ChannelClosedError):
        ends[0].send("small")  # refused, because half of the other message was sent
    with pytest.raises(ChannelClosedError):
        while True:
            assert ends[1].receive() == []


# ---- values that cannot be pickled ---------------------------------------------------------------


def test_what_cannot_travel_to_a_worker_says_so():
    class Locked(MoveToBeacon):
        lock = threading.Lock()

    with pytest.raises(TypeError, match="cannot pickle") as raised:
        pickle_for_worker(Locked)
    (note,) = raised.value.__notes__
    assert note.startswith("values for a worker process are pickled: a task's class")


def test_what_cannot_travel_to_the_trainer_says_so():
    with pytest.raises(TypeError, match="cannot pickle") as raised:
        for_trainer({"lock": threading.Lock()})
    (note,) = raised.value.__notes__
    assert note.startswith("values from a worker process are pickled: infos, results of calls")
