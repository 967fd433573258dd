"""What a worker runs behind its queue pair.

A player plays whole episodes: `play(episode, pair)` puts the first observation, then for each
action it gets puts one transition, and returns when the episode is over. One coroutine per
episode, read from top to bottom, because python-sc2's `on_step` wants it so. Rules: a player
never touches shared memory or the trainer; whatever its game does wrong leaves it as `GameFault`;
what the user's code raises leaves it as it is.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from gymnasium import spaces

from sc2pool.deadline import Deadline
from sc2pool.errors import FaultKind, GameFault
from sc2pool.tasks.queue_pair import QueuePair

if TYPE_CHECKING:
    from sc2pool.game.clock import Tick
    from sc2pool.processes.suspend import ProcessTree


@dataclass(frozen=True)
class Episode:
    """One episode to be played.

    Attributes:
        number: its place in the run, from 0; for an env of the user's, counted per env.
        seed: the game's random seed, or None for the game's own choice.
        options: as given to `reset(options=…)`.
        both_keywords: whether an env's `reset` is given seed and options even where they are empty,
            as gymnasium's vector envs do it for a reset that is not their own.
    """

    number: int
    seed: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    both_keywords: bool = False


@dataclass(frozen=True)
class GameFacts:
    """What the trainer wants to know of a launched game.

    Attributes:
        listener_proven: the system told that the port's listener is this very game.
    """

    pid: int
    port: int
    version: str
    base_build: int
    listener_proven: bool = True


class Player(ABC):
    """Plays episodes; lives as long as its worker.

    Attributes:
        strict: observations must match the space in shape and dtype and be finite (tasks), or
            are cast to it (environments of the user).
        attributes: what `set_attr` set earlier, for an object that has not been told yet.
        realtime: its game runs by itself.
    """

    strict: bool
    realtime = False
    attributes: Mapping[str, Any]
    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]
    metadata: Mapping[str, Any]
    render_mode: str | None
    _paused: ProcessTree | None = None

    async def launch(self, deadline: Deadline) -> GameFacts | None:  # noqa: ARG002
        """Start the game, where the player has one."""
        return None

    def exit_fault(self) -> GameFault:
        """What to report once `exited_fd` has become readable."""
        return GameFault(FaultKind.GAME_EXITED, "the game's process ended")

    @property
    def exited_fd(self) -> int | None:
        """A descriptor that becomes readable when the game ends; None without a game."""
        return None

    @abstractmethod
    async def play(self, episode: Episode, pair: QueuePair) -> None:
        """Play one episode. Cancelled, at `get_action`, where the trainer resets before its end."""

    @abstractmethod
    def target(self) -> Any:
        """The object that `get_attr`, `set_attr` and `env_method` act on."""

    def reset_kind(self) -> str:
        """How the running episode was begun: "restart" or "create" of a game, or "reset"."""
        return "reset"

    @property
    def recycle_due(self) -> bool:
        """Whether the game should be replaced once its episode is over."""
        return False

    def latest_view(self) -> tuple[Any, Any] | None:
        """The game's newest observation and the map's description, the messages themselves.

        None where there is no game, or nothing of it has been seen yet.
        """
        return None

    async def replay(self) -> bytes:
        """What was played so far, where the game can still tell; else nothing."""
        return b""

    def tick(self) -> Tick | None:
        """How late the newest step was, of a game in real time; None before the first."""
        return None

    def delay(self, loops: int) -> None:  # noqa: B027 - most players wait, and have no periods
        """Make the next decision period so many loops longer, of a game in real time."""

    async def pause(self) -> None:
        """Stop every process below this one; called while the player waits for an action.

        Raises:
            PauseError: not all could be stopped; all go on.
        """
        self.hold()

    def hold(self) -> None:
        """As `pause`, where an observation has just been made: the game is not asked again."""
        # Only who is paused needs psutil.
        from sc2pool.processes.suspend import STOPS_WITHIN_S, ProcessTree  # noqa: PLC0415

        # Not the worker itself: it has to hear when they are to go on.
        tree = ProcessTree(os.getpid(), with_root=False)
        tree.stop(Deadline.after(STOPS_WITHIN_S))
        self._paused = tree

    async def go_on(self) -> int | None:
        """Let them go on.

        Returns:
            How many game loops had passed meanwhile; None where that is not known.
        """
        self.release()
        return None

    def release(self) -> None:
        """Let what is paused go on, at once."""
        tree, self._paused = self._paused, None
        if tree is not None:
            tree.resume()

    def log_tail(self) -> str:
        """The last lines of the game's log; empty without a game."""
        return ""

    def close(self) -> None:  # noqa: B027 - not every player holds something
        """Let go of everything, as the user's code would want it."""


class PlayerSpec(Protocol):
    """What travels, pickled, to a worker: enough to make its player there."""

    def player(self) -> Player:
        """Make the player; called once, in the worker."""
        ...
