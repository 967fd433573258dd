"""The bot's end of the queue pair, where the bot puts transitions and gets actions.

The bot sends a transition with `put(transition)`, and waits for the action with `await
get_action()`. The learner receives the transition and sends the action.

There are three kinds of queue pairs:
* The pool's queue pairs use shared memory (`sc2pool.pool.queues.slots`).
* `QueuePair.local()` is for a bot and a learner in two threads of one process.
* `PolicyPair` has a function in place of the learner.

Rules: a transition is put before each `get_action`; an episode's first transition has reward 0. An
env may have several rows: two players of a match, or the agents of a team. Such an env puts all
transitions in one call and gets all actions in one call. The game continues only when all rows
have acted.
"""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from sc2pool.errors import UserCodeError

Masks = np.ndarray[Any, np.dtype[np.bool_]]


class Transition(NamedTuple):
    """The result of one env step for the learner."""

    observation: Any
    """An element of the task's observation space."""
    reward: float
    """The reward of the step; 0 in an episode's first transition."""
    terminated: bool
    truncated: bool
    info: Mapping[str, Any]
    action_masks: Masks | None = None
    """One bool for each action: False masks the action. None if the task has no masks."""


_POOLS_KEYS: Final = "sc2pool."
"""The prefix of the info's keys that are reserved for the pool."""


def check_info(info: Any) -> None:
    """Check that the user's info has no key that is reserved for the pool; else UserCodeError."""
    for key in info or ():
        if isinstance(key, str) and key.startswith(_POOLS_KEYS):
            raise UserCodeError(
                f"info has the key {key!r}, but keys that begin with {_POOLS_KEYS!r} are the pool's"
            )


class QueuePair(ABC):
    """The bot's end of an action queue and an observation queue."""

    @abstractmethod
    async def get_action(self) -> Any:
        """Wait for the learner's next action, an element of the task's action space."""

    @abstractmethod
    def put(self, transition: Transition) -> None:
        """Send a transition to the learner.

        Raises:
            ObservationError: in a pool, the observation does not fit the observation space.
        """

    async def get_actions(self) -> Sequence[Any]:
        """Wait for the next action of each row; return the actions in the order of the rows."""
        return [await self.get_action()]

    def put_rows(self, transitions: Sequence[Transition]) -> None:
        """Send the learner a transition for each row, in the order of the rows.

        The rows share one episode, so `terminated` and `truncated` must be the same in all of them.

        Raises:
            ObservationError: in a pool, an observation does not fit the observation space.
        """
        (transition,) = transitions
        self.put(transition)

    @staticmethod
    def local() -> LocalQueuePair:
        """A queue pair for a bot and a learner in two threads of one process.

        Use it to play an `RLBotAI` under python-sc2's own `run_game`: give the pair to the bot, run
        the game in one thread, and call `receive()` and `send()` in another.
        """
        return LocalQueuePair()


class LocalQueuePair(QueuePair):
    """Connects two threads: the bot's thread has an event loop, the learner's thread may block."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._actions: deque[Any] = deque()
        self._waiting: asyncio.Future[None] | None = None
        self._transitions: queue.SimpleQueue[Transition] = queue.SimpleQueue()

    def send(self, action: Any) -> None:
        """Send an action to the bot; the learner calls this."""
        with self._lock:
            self._actions.append(action)
            waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.get_loop().call_soon_threadsafe(_wake, waiting)

    def receive(self, timeout_s: float | None = None) -> Transition:
        """The bot's next transition, in the order of the bot's `put` calls; the learner calls this.

        Raises:
            TimeoutError: no transition came within `timeout_s` seconds.
        """
        try:
            return self._transitions.get(timeout=timeout_s)
        except queue.Empty:
            raise TimeoutError(f"the bot put no transition within {timeout_s} s") from None

    async def get_action(self) -> Any:
        while True:
            with self._lock:
                if self._actions:
                    return self._actions.popleft()
                self._waiting = waiting = asyncio.get_running_loop().create_future()
            await waiting

    def put(self, transition: Transition) -> None:
        self._transitions.put(transition)


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


class PolicyPair(QueuePair):
    """A queue pair whose actions come from a function of the observation, such as a policy."""

    def __init__(self, policy: Callable[[Any], Any]) -> None:
        self._policy = policy
        self._observation: Any = None

    async def get_action(self) -> Any:
        action = self._policy(self._observation)
        return await action if inspect.isawaitable(action) else action

    def put(self, transition: Transition) -> None:
        self._observation = transition.observation
