"""The states of an instance, and a table of the next state for each state and event.

    NEW ─► STARTING ─► LAUNCHING ─► IDLE
    IDLE ─► RESETTING ─► READY ─► PLAYING ◄─► STEPPING ─► OVER ─► RESETTING …
                │          ▲ │       ▲ │
                │  RELEASING HOLDING │ PAUSING
                │          ▲ ▼  RESUMING ▼
                └────────► HELD      ▲ PAUSED
                                     └───┘
    any of these ── fault, recycle ─► DEAD ─► FAILED          any at all ── close ─► CLOSED.

The pool acts and then reports an `Event`. Only this table determines the next state. If the table
lacks an entry, the pool has a bug, and `advance` raises an error. Every fault leads to DEAD, and
recovery always uses a new instance. A *paused* game was stopped while it waited for an action. A
*held* game was stopped at its first observation, before an env took the episode.
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """The state of an instance."""

    __hash__ = str.__hash__  # Enum's own hash is slow, and each step looks up a state

    NEW = "new"
    """The instance has no resources yet; its start may be delayed."""
    STARTING = "starting"
    """The worker was started; the instance waits for its turn to launch its game."""
    LAUNCHING = "launching"
    """The worker is starting the instance's game."""
    IDLE = "idle"
    """The game runs, but plays no episode."""
    RESETTING = "resetting"
    """The instance prepares an episode's first observation."""
    READY = "ready"
    """An episode's first observation has arrived; no env has taken the episode yet."""
    HOLDING = "holding"
    """The instance is READY, and its game is being stopped."""
    HELD = "held"
    """The instance is READY, and its game is stopped."""
    RELEASING = "releasing"
    """The instance is READY, and its game is being resumed."""
    PLAYING = "playing"
    """The instance plays an env's episode, and waits for an action."""
    PAUSING = "pausing"
    """The instance is PLAYING, and its game is being stopped."""
    PAUSED = "paused"
    """The instance is PLAYING, and its game is stopped."""
    RESUMING = "resuming"
    """The instance is PLAYING, and its game is being resumed."""
    STEPPING = "stepping"
    """The trainer has sent an action and awaits the reply."""
    OVER = "over"
    """The episode is over, and the next one has not begun."""
    DEAD = "dead"
    FAILED = "failed"
    CLOSED = "closed"


class Event(StrEnum):
    """An event in an instance's life."""

    __hash__ = str.__hash__

    START = "start"
    LAUNCH = "launch"
    LAUNCHED = "launched"
    RESET = "reset"
    FIRST_OBSERVATION = "first-observation"
    FIRST_OBSERVATION_HELD = "first-observation-held"
    """The first observation has arrived, and the worker has stopped the game as requested."""
    TAKEN = "taken"
    """An env takes the episode."""
    STEP = "step"
    REPLY = "reply"
    EPISODE_OVER = "episode-over"
    PAUSE = "pause"
    PAUSED = "paused"
    NOT_PAUSED = "not-paused"
    """The game could not be stopped, and continues."""
    RESUME = "resume"
    RESUMED = "resumed"
    FAULT = "fault"
    RECYCLE = "recycle"
    PERMANENT = "permanent"
    CLOSE = "close"


AWAITED = frozenset({State.STEPPING, State.RESETTING})
"""The states in which the trainer awaits a first observation or a transition."""

RESETTABLE = frozenset({State.IDLE, State.RESETTING, State.READY, State.PLAYING, State.OVER})
"""The states in which a reset may be requested."""

STOPPED = frozenset(
    {State.HOLDING, State.HELD, State.RELEASING, State.PAUSING, State.PAUSED, State.RESUMING}
)
"""The states in which a game is stopped, is being stopped, or is being resumed."""

AT_REST = frozenset(
    {State.IDLE, State.READY, State.HELD, State.PLAYING, State.PAUSED, State.OVER, State.FAILED}
)
"""The states without a time limit: only a request, a message or a fault ends them."""

LIVE = AWAITED | RESETTABLE | STOPPED | {State.NEW, State.STARTING, State.LAUNCHING}

TRANSITIONS: dict[tuple[State, Event], State] = {
    (State.NEW, Event.START): State.STARTING,
    (State.STARTING, Event.LAUNCH): State.LAUNCHING,
    (State.LAUNCHING, Event.LAUNCHED): State.IDLE,
    **{(state, Event.RESET): State.RESETTING for state in RESETTABLE},
    (State.RESETTING, Event.FIRST_OBSERVATION): State.READY,
    (State.RESETTING, Event.FIRST_OBSERVATION_HELD): State.HELD,
    (State.READY, Event.TAKEN): State.PLAYING,
    (State.PLAYING, Event.STEP): State.STEPPING,
    (State.STEPPING, Event.REPLY): State.PLAYING,
    (State.STEPPING, Event.EPISODE_OVER): State.OVER,
    # The game is stopped while it waits for an action.
    (State.PLAYING, Event.PAUSE): State.PAUSING,
    (State.PAUSING, Event.PAUSED): State.PAUSED,
    (State.PAUSING, Event.NOT_PAUSED): State.PLAYING,
    (State.PAUSING, Event.RESUME): State.RESUMING,
    (State.PAUSED, Event.RESUME): State.RESUMING,
    (State.RESUMING, Event.PAUSED): State.RESUMING,
    (State.RESUMING, Event.NOT_PAUSED): State.RESUMING,
    (State.RESUMING, Event.RESUMED): State.PLAYING,
    # The game is stopped at its first observation.
    (State.READY, Event.PAUSE): State.HOLDING,
    (State.HOLDING, Event.PAUSED): State.HELD,
    (State.HOLDING, Event.NOT_PAUSED): State.READY,
    (State.HOLDING, Event.RESUME): State.RELEASING,
    (State.HELD, Event.RESUME): State.RELEASING,
    (State.RELEASING, Event.PAUSED): State.RELEASING,
    (State.RELEASING, Event.NOT_PAUSED): State.RELEASING,
    (State.RELEASING, Event.RESUMED): State.READY,
    # The instance ends.
    (State.DEAD, Event.PERMANENT): State.FAILED,
    **{(state, Event.FAULT): State.DEAD for state in LIVE},
    **{(state, Event.RECYCLE): State.DEAD for state in LIVE},
    **{(state, Event.CLOSE): State.CLOSED for state in State},
}


def advance(state: State, event: Event) -> State:
    """The next state; AssertionError if the table lacks an entry, which is a bug in the pool."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise AssertionError(f"no transition from {state} on {event}") from None
