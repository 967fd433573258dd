"""The players that a worker runs. A player plays whole episodes. `play(episode, pair)` puts the
first observation on the queue pair, then one transition for each action that it gets, and returns
when the episode is over. An episode is one coroutine, because python-sc2 plays a game as one
coroutine. Rules: a player never touches shared memory or the trainer. Every failure of the game is
raised as `GameFault`. Exceptions of the user's code are passed on unchanged.
"""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from gymnasium import spaces

from sc2pool.deadline import Deadline
from sc2pool.errors import FaultKind, GameFault
from sc2pool.tasks.queue_pair import QueuePair

if TYPE_CHECKING:
    from sc2pool.game.clock import Tick
    from sc2pool.processes.tree import ProcessTree


@dataclass(frozen=True)
class Episode:
    """One episode to be played.

    Attributes:
        number: the episode's index in the run, from 0; for a user's env, its index in that env.
        seed: the game's random seed, or None for the game's own choice.
        options: the options given to `reset(options=…)`.
        both_keywords: whether an env's `reset` gets seed and options even if they are empty, as
            gymnasium's vector envs pass them when the user resets.
    """

    number: int
    seed: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    both_keywords: bool = False


RECYCLE_CAUSES = ("", "game-loops", "silence", "games-created")
"""The reasons to replace a player's game between two episodes; "" keeps the game."""


@dataclass(frozen=True)
class GameFacts:
    """The facts that the trainer records about a launched game."""

    pid: int
    """The id of the process that listens on the port."""
    root_pid: int
    """The id of the process that was started, which may be a script that starts the game."""
    port: int
    version: str
    base_build: int
    listener_proven: bool = True
    """Whether the system has confirmed that this game listens on the port."""


class Player(ABC):
    """Plays the episodes of one env; lives as long as its worker.

    Attributes:
        strict: whether observations must be finite and match the space in shape and dtype, as for
            tasks. The observations of a user's env are cast to the space instead.
        rows: the number of the env's rows in a batch, one for each learning player or agent. The
            spaces are those of one row.
        attributes: for each row, a dict of the values that `set_attr` set earlier; the values are
            set again on each new object.
        realtime: whether the game runs by itself.
        is_a_pool: whether the user's env is one of sc2pool's envs, which have their own pools.
        directory: for temporary files of the player's game; None for the system's directory.
        warn: a function for warnings about the game; the user should read each warning once.
    """

    strict: bool
    rows: int = 1
    directory: Path | None = None
    warn: Callable[[str], None] = logging.getLogger("sc2pool").warning
    realtime = False
    is_a_pool = False
    attributes: Sequence[Mapping[str, Any]]
    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]
    metadata: Mapping[str, Any]
    render_mode: str | None
    _paused: ProcessTree | None = None

    async def launch(self, deadline: Deadline) -> Sequence[GameFacts]:  # noqa: ARG002
        """Start the player's games (one, two for a match, or none), and return their facts."""
        return ()

    def exit_fault(self) -> GameFault:
        """The fault to report when one of `exited_fds` has become readable."""
        return GameFault(FaultKind.GAME_EXITED, "the game's process ended")

    @property
    def exited_fds(self) -> Sequence[int]:
        """A descriptor for each of the player's games; it becomes readable when that game ends."""
        return ()

    @abstractmethod
    async def play(self, episode: Episode, pair: QueuePair) -> None:
        """Play one episode. If the trainer resets early, the call is cancelled at `get_action`."""

    @abstractmethod
    def target(self, row: int = 0) -> Any:
        """The object on which `get_attr`, `set_attr` and `env_method` of this row act."""

    def reset_kind(self) -> str:
        """How the running episode began: "restart" or "create" for a game, "reset" for an env."""
        return "reset"

    @property
    def recycle_due(self) -> str:
        """The reason to replace the game after its episode (one of `RECYCLE_CAUSES`); empty to keep
        it."""
        return ""

    def loop_cost_growth(self) -> float:
        """The ended episode's CPU time per loop, relative to the first episodes; 0 if unknown."""
        return 0.0

    def latest_view(self) -> tuple[Any, Any] | None:
        """The newest observation and map as messages; None without a game or observation."""
        return None

    async def replay(self) -> bytes:
        """The replay of the episode so far; empty if the game cannot save it."""
        return b""

    def tick(self) -> Tick | None:
        """In real time, how late the newest step was; None before the first step."""
        return None

    def delay(self, loops: int) -> None:  # noqa: B027 - only players in real time have periods
        """In real time, lengthen the next decision period by this many game loops."""

    async def pause(self) -> None:
        """Stop the processes between actions; on a failure, resume them and raise PauseError."""
        self.hold()

    def hold(self) -> None:
        """Stop as `pause` does, but right after an observation, so no new observation is needed."""
        # Only a worker that is paused needs psutil.
        from sc2pool.processes.tree import STOPS_WITHIN_S, ProcessTree  # noqa: PLC0415

        roots, with_root = self.processes
        tree = ProcessTree(*roots, with_root=with_root)
        tree.stop(Deadline.after(STOPS_WITHIN_S))
        self._paused = tree

    @property
    def processes(self) -> tuple[Sequence[int], bool]:
        """The root pids of the player's process trees, and whether `pause` stops the roots too."""
        # The root is the worker itself, which must not stop: it receives the message to resume.
        return (os.getpid(),), False

    async def resume(self) -> int | None:
        """Let stopped processes continue; return the game loops since `pause`, None if unknown."""
        self.resume_now()
        return None

    def resume_now(self) -> None:
        """Let every stopped process continue, without asking the game."""
        tree, self._paused = self._paused, None
        if tree is not None:
            tree.resume()

    def log_tail(self) -> str:
        """The last lines of the logs of the player's games; empty without a game."""
        return ""

    def close(self) -> None:  # noqa: B027 - not every player has something to close
        """Close the game or the user's env."""


class PlayerSpec(Protocol):
    """The pickled form of a player: the worker makes the player from it."""

    def player(self) -> Player:
        """Make the player; called once, in the worker."""
        ...
