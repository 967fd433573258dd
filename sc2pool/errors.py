"""The errors that sc2pool raises, and the fault that ends an instance (a game and its worker).

    SC2PoolError
    ├── ConfigError        a wrong request: unknown task, missing map, bad path, n=0
    │   ├── MissingPackageError  a feature's package is not installed; names the extra to install
    │   └── SampleTimeoutError  RLlib's timeout is shorter than games in real time need
    ├── ActionError        an action outside its space; nothing was sent to any game
    ├── ObservationError   a task's observation has the wrong shape or dtype, or NaN; NaN as reward
    ├── UserCodeError      a task or a gym environment raised; has the remote traceback
    ├── CrashLoopError     instances failed more often than the restart policy allows
    ├── NodeLostError      a Ray node died, and no other node had room for its games in time
    ├── PauseError         a process could not be paused; all processes continue
    ├── LearnerError       the process that computes a learner's updates ended or hangs
    ├── ClosedError        the pool was closed, or failed for good, before this call
    ├── InterruptedCallError  an interrupt cut a call short; the next `reset` recovers
    ├── ForkedPoolError    a forked child used the pool of its parent
    └── GameFault          one game or its worker failed; the pool replaces the pair

Rules: an error's message names the given value, the expected value, and the env, if any. A
`GameFault` is raised inside a worker, and reaches the trainer as data (`Fault`), not as an
exception. So a broken game is marked in `infos`, and does not end the training loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SC2PoolError(Exception):
    """Base of all errors raised by sc2pool."""


class ConfigError(SC2PoolError, ValueError):
    """The pool, the game or the task cannot be set up as requested; another try does not help."""


class MissingPackageError(ConfigError, ImportError):
    """A feature needs a package that is not installed; the message names the extra to install."""


class SampleTimeoutError(ConfigError):
    """RLlib's `sample_timeout_s` is shorter than games in real time need for a fragment.

    The error is raised before the first update if no fragment can be played in time. It is also
    raised if RLlib has discarded all samples as too late in two consecutive training steps.
    """


class ActionError(SC2PoolError, ValueError):
    """An action is outside its space; nothing was sent to any game."""


class ObservationError(SC2PoolError, ValueError):
    """A task's observation does not fit its observation space, or its reward is not finite."""


class UserCodeError(SC2PoolError, RuntimeError):
    """Code of the user (a task's hook, a gym environment) raised in its worker."""


class CrashLoopError(SC2PoolError, RuntimeError):
    """Instances were replaced more often than `RestartPolicy` allows."""


class NodeLostError(SC2PoolError, RuntimeError):
    """A node of a Ray cluster died with its games, and no other node had room for them in time."""


class PauseError(SC2PoolError, RuntimeError):
    """A process could not be stopped for a pause, so all processes continue."""


class LearnerError(SC2PoolError, RuntimeError):
    """The process that computes a learner's updates has ended or hangs.

    The error is also raised if an exception of the update process cannot be pickled.
    """


class ClosedError(SC2PoolError, RuntimeError):
    """The environment was closed, or failed permanently, before this call."""


class InterruptedCallError(SC2PoolError, RuntimeError):
    """An interrupt (Ctrl-C) ended an earlier call too soon; call `reset` before anything else."""


class ForkedPoolError(SC2PoolError, RuntimeError):
    """A forked child used the pool of its parent process."""


class FaultKind(StrEnum):
    """The kind of failure that was observed."""

    GAME_EXITED = "game-exited"
    WORKER_EXITED = "worker-exited"
    CONNECTION_LOST = "connection-lost"
    BAD_REPLY = "bad-reply"
    DEADLINE = "deadline"
    PORT_TAKEN = "port-taken"
    LAUNCH_FAILED = "launch-failed"
    SETUP_FAILED = "setup-failed"
    """The game refuses the map or the players, or the map does not start. A new process tries once
    more; if this try also fails, the fault becomes a `ConfigError`."""
    SPAWN_FAILED = "spawn-failed"
    """The system refused a resource for a worker: a process, memory, a descriptor or a folder."""
    STOPPED = "stopped"
    HUNG = "hung"
    MEMORY = "memory"
    NODE_LOST = "node-lost"
    """A Ray node, or the actor on it that plays several games, has died."""
    USER_CODE = "user-code"
    """An error of the user's code. This kind occurs only in fault reports, because the error itself
    is raised, without a retry."""


class Phase(StrEnum):
    """What the instance was doing when it failed."""

    LAUNCHING = "launching"
    RESETTING = "resetting"
    STEPPING = "stepping"
    IDLE = "idle"


@dataclass(frozen=True)
class Fault:
    """One failure of one instance, for the trainer and the logs."""

    kind: FaultKind
    phase: Phase
    detail: str
    refused: bool = False
    """True if a process, thread, descriptor or memory was lacking: a later try may succeed."""
    map_note: str = ""
    """The map and the versions, if the game failed with its first map: the map may be the cause."""

    def __str__(self) -> str:
        return f"{self.kind} while {self.phase}: {self.detail}"


class GameFault(SC2PoolError):
    """Raised when a game fails; ends the instance.

    The kind is `GAME_EXITED` if a user's env omits it, as in `GameFault("the window is gone")`.

    Attributes:
        kind: The kind of failure that was observed.
        detail: One sentence that names the given and the expected value.
        refused, map_note: See `Fault`.
    """

    # Defaults for a user's subclass whose `__init__` does not call this class's `__init__`.
    kind: FaultKind = FaultKind.GAME_EXITED
    detail: str = ""
    refused: bool = False
    map_note: str = ""

    def __init__(
        self,
        kind: FaultKind | str,
        detail: str | None = None,
        *,
        refused: bool = False,
        map_note: str = "",
    ) -> None:
        if detail is None:
            kind, detail = FaultKind.GAME_EXITED, kind
        kind = FaultKind(kind)
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail
        self.refused = refused
        self.map_note = map_note

    def with_detail(self, detail: str) -> GameFault:
        """The same fault with another detail."""
        return GameFault(self.kind, detail, refused=self.refused, map_note=self.map_note)

    def noting_map(self, note: str) -> GameFault:
        """The same fault with a note on the map, because the map may be the fault's cause."""
        return GameFault(self.kind, self.detail, refused=self.refused, map_note=note)
