"""The messages between trainer and worker, except the actions and replies in the slots.

`Host` and `Leave` go from the trainer to a worker, on its control socket. All other messages use
the channel of an instance.

The trainer first sends an instance `Start`, then `UseMemory` and `Launch` in either order. After
these it sends `Reset`, `ActionOutOfBand`, `Call`, `Pause` and `Resume` in any order, and at the end
`Close`. An instance sends the trainer `Hello`, `Launched`, `OutOfBand`, `Answer`, `Paused`,
`Resumed`, `NotHeld` and `Warned`. After a failure its last message is `Faulted` or `Raised`.

Fields named `payload` hold pickled values of the user. Only the code that uses such a value
unpickles it.
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
    """Host this instance; sent with the descriptors of its channel and of its spec's memory.

    The pickled `PlayerSpec` is in a memory: it may be too large for a socket's buffer, which a
    worker that is still starting does not empty. The directory is for temporary files.
    """

    number: int
    directory: Path
    spec_bytes: int


@dataclass(frozen=True)
class Leave:
    """End this instance and close its channel; sent only if the worker has other instances."""

    number: int


@dataclass(frozen=True)
class Start:
    """Make the player, with this `sys.path`."""

    sys_path: list[str]


@dataclass(frozen=True)
class UseMemory:
    """Use the slot of the shared memory at this offset."""

    offset_bytes: int


@dataclass(frozen=True)
class Launch:
    """Start the game within `timeout_s`."""

    timeout_s: float


@dataclass(frozen=True)
class Reset:
    """Begin this episode; its first observation is the answer to request `sequence`.

    The reset's options are in `options` (pickled, or empty), and not in `episode`. For each row
    `attributes` has a mapping from names to the pickled values that `set_attr` has set. With `hold`
    the game is stopped at its first observation until `Resume`.
    """

    sequence: int
    episode: Episode
    options: bytes
    attributes: Sequence[Mapping[str, bytes]]
    hold: bool = False


@dataclass(frozen=True)
class ActionOutOfBand:
    """An action that does not fit the slot in shared memory."""

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
    """Stop the player's processes (`Player.processes`); sent only while no reply is awaited."""


@dataclass(frozen=True)
class Resume:
    """Let the processes that `Pause` or `hold` has stopped continue."""


@dataclass(frozen=True)
class Close:
    """Close the player; the worker exits after its last instance."""


@dataclass(frozen=True)
class Hello:
    """The worker has made the player, which has these spaces and properties."""

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
    """The player's games run: one game, two in a match, or none for a player without games."""

    games: Sequence[GameFacts]


@dataclass(frozen=True)
class OutOfBand:
    """A reply's pickled (observation or None, info), or (None, infos) if there are several rows."""

    sequence: int
    payload: bytes


@dataclass(frozen=True)
class Answer:
    """The pickled result of call `number`, or the error that the call raised."""

    number: int
    payload: bytes | None
    raised: Raised | None = None


@dataclass(frozen=True)
class Paused:
    """The answer to `Pause`: the processes are stopped, or `problem` says why they continue."""

    problem: str


@dataclass(frozen=True)
class Resumed:
    """The processes continue; `loops` game loops passed during the stop (None if unknown)."""

    loops: int | None


@dataclass(frozen=True)
class NotHeld:
    """The game could not be stopped at its first observation; `problem` says why."""

    problem: str


@dataclass(frozen=True)
class Warned:
    """A warning about the game, which the trainer logs once."""

    text: str


@dataclass(frozen=True)
class Evidence:
    """The evidence of a fault: the end of the games' logs, the worker's traceback, the replay."""

    log_tail: str = ""
    traceback: str = ""
    replay: bytes = b""


@dataclass(frozen=True)
class Faulted:
    """The instance has failed because of its game; the pool replaces the instance."""

    fault: Fault
    evidence: Evidence


@dataclass(frozen=True)
class Raised:
    """Code outside the game, such as the user's, raised an error that would occur again.

    `payload` is the pickled exception, or None if the exception cannot be pickled. `summary` is
    "Type: message".
    """

    payload: bytes | None
    summary: str
    phase: str
    evidence: Evidence
