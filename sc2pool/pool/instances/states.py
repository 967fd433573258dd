"""The life of an instance, as a table: (state, event) → next state.

The supervisor acts, then says what happened (`Event`); this table alone knows where that leads.
An event that is not in the table is a defect of the pool, not of a game, and raises. Rule of the
whole room, crash-only: every fault leads to DEAD, and the only way back is a new pair.
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where an instance is in its life."""

    __hash__ = str.__hash__  # Enum's own is written in Python, and the table is on each step's path

    NEW = "new"
    """Its worker is being spawned, or is up and waits for its turn to launch."""
    LAUNCHING = "launching"
    """The worker starts its game."""
    IDLE = "idle"
    """The game answers and plays nothing."""
    RESETTING = "resetting"
    """On the way to a episode's first observation."""
    READY = "ready"
    """Holds a first observation that no env has taken."""
    PLAYING = "playing"
    """Bound to an env, waiting for an action."""
    STEPPING = "stepping"
    """An action was sent; its reply is awaited."""
    PAUSED = "paused"
    """Its game is being stopped, is stopped, or is about to go on."""
    OVER = "over"
    """The episode's last transition is there; the next episode has not been dealt."""
    DEAD = "dead"
    FAILED = "failed"
    CLOSED = "closed"


class Event(StrEnum):
    """What happened to an instance."""

    __hash__ = str.__hash__

    LAUNCH = "launch"
    LAUNCHED = "launched"
    TICKET = "episode"
    FIRST_OBSERVATION = "first-observation"
    BOUND = "bound"
    STEP = "step"
    REPLY = "reply"
    EPISODE_OVER = "episode-over"
    PAUSE = "pause"
    GOES_ON_READY = "goes-on-ready"
    """No longer paused, nor bound to an env."""
    GOES_ON_PLAYING = "goes-on-playing"
    FAULT = "fault"
    RECYCLE = "recycle"
    PERMANENT = "permanent"
    CLOSE = "close"


AWAITED = frozenset({State.STEPPING, State.RESETTING})
"""In these a reply is awaited, an episode's first observation or a step's transition."""

LIVE = frozenset(
    {
        State.NEW,
        State.LAUNCHING,
        State.IDLE,
        State.RESETTING,
        State.READY,
        State.PLAYING,
        State.STEPPING,
        State.PAUSED,
        State.OVER,
    }
)

TRANSITIONS: dict[tuple[State, Event], State] = {
    (State.NEW, Event.LAUNCH): State.LAUNCHING,
    (State.LAUNCHING, Event.LAUNCHED): State.IDLE,
    (State.IDLE, Event.TICKET): State.RESETTING,
    (State.RESETTING, Event.FIRST_OBSERVATION): State.READY,
    (State.READY, Event.BOUND): State.PLAYING,
    (State.READY, Event.TICKET): State.RESETTING,
    (State.RESETTING, Event.TICKET): State.RESETTING,
    (State.PLAYING, Event.STEP): State.STEPPING,
    (State.PLAYING, Event.TICKET): State.RESETTING,
    (State.STEPPING, Event.REPLY): State.PLAYING,
    (State.STEPPING, Event.EPISODE_OVER): State.OVER,
    (State.READY, Event.PAUSE): State.PAUSED,
    (State.PLAYING, Event.PAUSE): State.PAUSED,
    (State.PAUSED, Event.GOES_ON_READY): State.READY,
    (State.PAUSED, Event.GOES_ON_PLAYING): State.PLAYING,
    (State.OVER, Event.TICKET): State.RESETTING,
    (State.DEAD, Event.PERMANENT): State.FAILED,
    **{(state, Event.FAULT): State.DEAD for state in LIVE},
    **{(state, Event.RECYCLE): State.DEAD for state in LIVE},
    **{(state, Event.CLOSE): State.CLOSED for state in State},
}


def advance(state: State, event: Event) -> State:
    """The state that follows `state` on `event`.

    Raises:
        AssertionError: the table has no such line: the pool itself is wrong.
    """
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise AssertionError(f"no transition from {state} on {event}") from None
