"""A walk through the table of an instance's life."""

from __future__ import annotations

from itertools import product

import pytest

from sc2pool.pool.instances.states import LIVE, TRANSITIONS, Event, State, advance

GONE = {State.DEAD, State.FAILED, State.CLOSED}


def test_a_whole_life():
    state = State.NEW
    for event, expected in [
        (Event.START, State.STARTING),
        (Event.LAUNCH, State.LAUNCHING),
        (Event.LAUNCHED, State.IDLE),
        (Event.RESET, State.RESETTING),
        (Event.FIRST_OBSERVATION, State.READY),
        (Event.RESET, State.RESETTING),
        (Event.FIRST_OBSERVATION_HELD, State.HELD),
        (Event.RESUME, State.RELEASING),
        (Event.RESUMED, State.READY),
        (Event.PAUSE, State.HOLDING),
        (Event.PAUSED, State.HELD),
        (Event.RESUME, State.RELEASING),
        (Event.RESUMED, State.READY),
        (Event.TAKEN, State.PLAYING),
        (Event.PAUSE, State.PAUSING),
        (Event.PAUSED, State.PAUSED),
        (Event.RESUME, State.RESUMING),
        (Event.RESUMED, State.PLAYING),
        (Event.STEP, State.STEPPING),
        (Event.REPLY, State.PLAYING),
        (Event.STEP, State.STEPPING),
        (Event.EPISODE_OVER, State.OVER),
        (Event.RESET, State.RESETTING),
        (Event.FIRST_OBSERVATION, State.READY),
        (Event.TAKEN, State.PLAYING),
        (Event.RESET, State.RESETTING),
        (Event.FAULT, State.DEAD),
        (Event.PERMANENT, State.FAILED),
        (Event.CLOSE, State.CLOSED),
    ]:
        state = advance(state, event)
        assert state is expected


@pytest.mark.parametrize(
    ("state", "moving"), [(State.PLAYING, State.PAUSING), (State.READY, State.HOLDING)]
)
def test_a_game_that_could_not_be_stopped_is_where_it_was(state, moving):
    assert advance(state, Event.PAUSE) is moving
    assert advance(moving, Event.NOT_PAUSED) is state


@pytest.mark.parametrize(
    ("moving", "going_on", "after"),
    [
        (State.PAUSING, State.RESUMING, State.PLAYING),
        (State.HOLDING, State.RELEASING, State.READY),
    ],
)
@pytest.mark.parametrize("late", [Event.PAUSED, Event.NOT_PAUSED])
def test_a_pause_may_be_taken_back_before_it_is_done(moving, going_on, after, late):
    assert advance(moving, Event.RESUME) is going_on
    assert advance(going_on, late) is going_on, "what the worker says of the pause comes late"
    assert advance(going_on, Event.RESUMED) is after


def test_a_state_is_live_or_gone():
    assert set(State) == LIVE | GONE
    assert not LIVE & GONE


@pytest.mark.parametrize("event", [Event.FAULT, Event.RECYCLE])
def test_failures_in_live_states_lead_to_dead(event):
    assert {advance(state, event) for state in LIVE} == {State.DEAD}


def test_every_state_can_be_closed():
    assert {advance(state, Event.CLOSE) for state in State} == {State.CLOSED}


def test_nothing_comes_back_from_the_dead():
    for (state, _), after in TRANSITIONS.items():
        if state in GONE:
            assert after in GONE


def test_every_state_can_be_reached_and_every_event_happens():
    reached = {State.NEW}
    for _ in State:
        reached |= {after for (state, _), after in TRANSITIONS.items() if state in reached}
    assert reached == set(State)
    assert {event for _, event in TRANSITIONS} == set(Event)


def test_events_outside_the_table_raise():
    missing = set(product(State, Event)) - set(TRANSITIONS)
    assert (State.NEW, Event.STEP) in missing
    for state, event in missing:
        with pytest.raises(AssertionError, match=f"no transition from {state} on {event}"):
            advance(state, event)
