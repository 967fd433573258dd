"""The messages of trainer and worker beside the step path.

On a worker's control socket, trainer to worker: `Host` and `Leave`. All others are on the channel
of an instance.

Trainer to worker, in the order of an instance's life: `Start`, then `UseMemory` and `Launch` in
either order, then `Reset`, `ActionOutOfBand`, `Call`, `Pause` and `Resume` as they come, and
`Close`. Worker to trainer: `Hello`, `Launched`, `OutOfBand`, `Answer`, `Paused`, `Resumed`,
`NotHeld`, `Warned`, and, last of all, `Faulted` or `Raised`.
Rule: fields named `payload` are pickled by the user's rules and only opened where they belong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gymnasium import spaces

from sc2pool.errors import Fault
from sc2pool.tasks.player import Episode, GameFacts


@dataclass(frozen=True)
class Host:
    """Let this instance live here; its temporary files belong into `directory`.

    Two descriptors come with it: its channel, and a memory that holds its pickled `PlayerSpec`. A
    socket may have no room for that, and the worker reads none before it is up.
    """

    number: int
    directory: Path
    spec_bytes: int


@dataclass(frozen=True)
class Leave:
    """Let go of this instance, and close its channel; only if the worker has others."""

    number: int


@dataclass(frozen=True)
class Start:
    """Make the player, with this search path for modules."""

    sys_path: list[str]


@dataclass(frozen=True)
class UseMemory:
    """The slot of the shared memory that begins here is yours."""

    offset_bytes: int


@dataclass(frozen=True)
class Launch:
    """Start the game, within this time."""

    timeout_s: float


@dataclass(frozen=True)
class Reset:
    """Play this episode; its first observation answers request `sequence`.

    `attributes` has for each row names and pickled values, as `set_attr` left them. With `hold` the
    game is stopped at that observation, until `Resume`.
    """

    sequence: int
    episode: Episode
    attributes: Sequence[Mapping[str, bytes]]
    hold: bool = False


@dataclass(frozen=True)
class ActionOutOfBand:
    """An action that has no place in the slot."""

    sequence: int
    payload: bytes


@dataclass(frozen=True)
class Call:
    """Run `operation` (a key of `OPERATIONS`) on the player's target of this row."""

    number: int
    operation: str
    payload: bytes
    row: int = 0


@dataclass(frozen=True)
class Pause:
    """Stop every process below the worker; only while no reply is awaited."""


@dataclass(frozen=True)
class Resume:
    """Let them go on."""


@dataclass(frozen=True)
class Close:
    """Close the player and exit."""


@dataclass(frozen=True)
class Hello:
    """The player exists and has these spaces."""

    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]
    metadata: Mapping[str, Any]
    render_mode: str | None
    strict: bool
    realtime: bool
    rows: int = 1
    is_a_pool: bool = False


@dataclass(frozen=True)
class Launched:
    """The games are up: one, two of a match, none if the player has none."""

    games: Sequence[GameFacts]


@dataclass(frozen=True)
class OutOfBand:
    """The pickled (observation or None, info) that belongs to reply `sequence`.

    Of an env of several rows: (None, the infos of all rows).
    """

    sequence: int
    payload: bytes


@dataclass(frozen=True)
class Answer:
    """The pickled result of call `number`, or what it raised."""

    number: int
    payload: bytes | None
    raised: Raised | None = None


@dataclass(frozen=True)
class Paused:
    """They are stopped, or go on because of a `problem`, which is empty for none."""

    problem: str


@dataclass(frozen=True)
class Resumed:
    """They go on; `loops` game loops passed while they were stopped (None if unknown)."""

    loops: int | None


@dataclass(frozen=True)
class NotHeld:
    """The game runs on from its first observation, because of a `problem`."""

    problem: str


@dataclass(frozen=True)
class Warned:
    """A sentence about the game that the user should read once."""

    text: str


@dataclass(frozen=True)
class Evidence:
    """A worker's evidence of a fault: the logs of its games, its traceback, the replay."""

    log_tail: str = ""
    traceback: str = ""
    replay: bytes = b""


@dataclass(frozen=True)
class Faulted:
    """The instance is over: the game did this; the pool replaces the pair."""

    fault: Fault
    evidence: Evidence


@dataclass(frozen=True)
class Raised:
    """Code that is not the game's raised; replacing the instance cannot help.

    Attributes:
        payload: the pickled exception, or None if it cannot be pickled.
        summary: `Type: message`.
        phase: what the worker was doing.
        evidence: with the formatted traceback in the worker.
    """

    payload: bytes | None
    summary: str
    phase: str
    evidence: Evidence
