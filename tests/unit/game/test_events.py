"""What a game says once reaches the next observation that is shown."""

from __future__ import annotations

from s2clientprotocol import error_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.game.events import PendingEvents, events_of
from sc2pool.protocol.observed import Observed


def seen(
    loop: int,
    *,
    dead: tuple[int, ...] = (),
    alert: int | None = None,
    error: int | None = None,
    said: str = "",
    result: int | None = None,
) -> Observed:
    """An observation of this loop with one unit of this tag, and these events."""
    response = sc_pb.ResponseObservation()
    state = response.observation
    state.game_loop = loop
    state.score.score = loop
    state.raw_data.units.add(tag=loop, unit_type=48, alliance=raw_pb2.Self)
    state.raw_data.event.dead_units.extend(dead)
    if alert is not None:
        state.alerts.append(alert)
    if error is not None:
        response.action_errors.add(unit_tag=loop, result=error)
        response.actions.add(game_loop=loop)
    if said:
        response.chat.add(player_id=1, message=said)
    if result is not None:
        response.player_result.add(player_id=1, result=result)
    return Observed.of(response)


def test_they_are_told_once_the_earlier_first():
    events = PendingEvents()
    events.keep(seen(1, dead=(7,), alert=sc_pb.UnitUnderAttack, said="a"))
    events.keep(seen(2, dead=(8, 9), error=error_pb2.NotEnoughMinerals))
    told = events.deliver(seen(3, dead=(10,), alert=sc_pb.NuclearLaunchDetected, said="b")).response
    assert list(told.observation.raw_data.event.dead_units) == [7, 8, 9, 10]
    assert list(told.observation.alerts) == [sc_pb.UnitUnderAttack, sc_pb.NuclearLaunchDetected]
    assert [line.message for line in told.chat] == ["a", "b"]
    assert [error.unit_tag for error in told.action_errors] == [2]
    assert [action.game_loop for action in told.actions] == [2]
    again = seen(4, dead=(11,))
    assert events.deliver(again) is again


def test_of_the_state_nothing_is_kept():
    events = PendingEvents()
    events.keep(seen(1, dead=(7,)))
    told = events.deliver(seen(3))
    assert (told.game_loop, told.score) == (3, 3)
    assert list(told.columns.tag) == [3]
    assert [unit.tag for unit in told.observation.raw_data.units] == [3]


def test_a_result_is_told_once():
    events = PendingEvents()
    events.keep(seen(1, result=sc_pb.Victory))
    told = events.deliver(seen(1, dead=(7,))).response
    assert [result.result for result in told.player_result] == [sc_pb.Victory]
    events.keep(seen(1, result=sc_pb.Undecided))
    told = events.deliver(seen(1, result=sc_pb.Victory)).response
    assert [result.result for result in told.player_result] == [sc_pb.Victory], "the newest"


def test_observation_without_events_is_not_copied():
    assert events_of(seen(1).response) is None
    events = PendingEvents()
    events.keep(seen(1))
    observed = seen(2)
    assert events.deliver(observed) is observed


def test_another_episode_is_not_told():
    events = PendingEvents()
    events.keep(seen(1, dead=(7,)))
    events.clear()
    observed = seen(2)
    assert events.deliver(observed) is observed
