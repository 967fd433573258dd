"""A map that asks for it has every observation say where it comes from."""

from __future__ import annotations

import zlib

from s2clientprotocol import sc2api_pb2 as sc_pb

from tests.standin.sessions import command

MARINE, ME = 48, 1
MOVE = 3794


def stamp(offline):
    """Instance, episode, loop, actions, checksum."""
    reply = offline.observed()
    (chat,) = reply.chat
    word, *numbers = chat.message.split()
    assert word == "stamp"
    return [int(number) for number in numbers]


def test_it_tells_instance_episode_loop_and_the_newest_action(offline, session_for):
    offline.arena((MARINE, ME, 20, 20), stamp=True)
    instance, *rest = stamp(offline)
    assert rest == [1, 0, 0, 0]
    for count, point in enumerate([(30.0, 30.0), (31.0, 30.0)], start=1):
        request = sc_pb.RequestAction(actions=[command(offline.units(MARINE), MOVE, point)])
        offline.ask(action=request)
        offline.step(8)
        checksum = zlib.crc32(request.SerializeToString())
        assert stamp(offline) == [instance, 1, 8 * count, count, checksum]
    offline.ask(restart_game=sc_pb.RequestRestartGame())
    assert stamp(offline) == [instance, 2, 0, 0, 0]
    offline.ask(leave_game=sc_pb.RequestLeaveGame())
    offline.arena(stamp=True)
    assert stamp(offline) == [instance, 3, 0, 0, 0]
    other = session_for()
    other.arena(stamp=True)
    assert stamp(other)[0] != instance


def test_other_maps_say_nothing(offline):
    offline.arena()
    assert not offline.observed().chat
