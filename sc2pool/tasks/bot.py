"""`RLBotAI`: a task written with python-sc2's `BotAI`.

The user writes `act`, `observe`, `reward`, and has all of BotAI at hand; `on_step` is ours: it
puts a transition on the queue pair and gets the action to take. So python-sc2 goes on calling
`on_step`, and a learner elsewhere goes on calling `env.step()`, and neither blocks the other.

    class Walker(RLBotAI):
        map_name = "MoveToBeacon"
        observation_space = spaces.Box(-1, 1, (2,), np.float32)
        action_space = spaces.Discrete(8)

        def act(self, action): ...
        def observe(self): ...

Rules: a new object per episode; every hook may be `async`; attributes of ours never shadow
BotAI's. The same class plays in the pool, and, with `QueuePair.local()` or a policy, under
python-sc2's `run_game`.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from s2clientprotocol import sc2api_pb2 as sc_pb
from sc2.bot_ai import BotAI
from sc2.data import Result
from sc2.game_state import GameState
from sc2.protocol import ConnectionAlreadyClosedError, ProtocolError

from sc2pool.errors import ConfigError
from sc2pool.tasks.definition import TaskDefinition
from sc2pool.tasks.player import masks_of, resolve
from sc2pool.tasks.queue_pair import PolicyPair, QueuePair, Transition


class RLBotAI(TaskDefinition, BotAI):
    """A bot that a learner plays through its queue pair.

    Args:
        queue_pair: where actions come from and transitions go; the pool gives its own.
        policy: instead of a queue pair, a function (it may be `async`) from an observation to an
            action, for playing without a learner.

    Attributes:
        episode_over: the last transition has been put.
        score_change: change of the game's score in the last step.
    """

    def __init__(
        self,
        queue_pair: QueuePair | None = None,
        *,
        policy: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__()
        if (queue_pair is None) == (policy is None):
            raise ConfigError(f"{type(self).__name__} takes either a queue pair or a policy")
        self.queue_pair = PolicyPair(policy) if queue_pair is None and policy else queue_pair
        self.options: Mapping[str, Any] = {}
        self.episode_over = False
        self.score_change = 0.0
        self._last_score: float | None = None

    @abstractmethod
    def act(self, action: Any) -> Awaitable[None] | None:
        """Give the orders that `action` stands for, as any bot would (`unit.move(…)`, `self.do`).

        Orders reach the game together with the step; their results are not returned.
        """

    @abstractmethod
    def observe(self) -> Any:
        """What the learner sees. May be `async`.

        Returns:
            An element of the observation space: its shape and dtype, no NaN. Anything else is
            raised in the trainer, as `ObservationError`; an exception, as `UserCodeError`.
        """

    def reward(self) -> float | Awaitable[float]:
        """The reward of the last step; by default the change of the game's score."""
        return self.score_change

    async def on_step(self, iteration: int) -> None:  # noqa: ARG002
        """Put the transition that led here, and take the next action."""
        self.client.game_step = self.step_mul  # for python-sc2's own loop
        observed_s = time.monotonic()
        loop = self.state.game_loop
        truncated = self.max_loops is not None and loop >= self.max_loops
        terminated = bool(await resolve(self.terminated()))
        await self._put(terminated=terminated, truncated=truncated)
        if self.episode_over:
            await self.client.leave()
        else:
            action = await self._pair.get_action()
            await resolve(self.act(action))
            self.last_action = action
            if self.realtime:  # the pool, which knows it better, says so again
                self.delay_s = time.monotonic() - observed_s

    async def on_end(self, game_result: Result) -> None:  # noqa: ARG002
        """The game is over: put the last transition, seen from the game's final state."""
        if self.episode_over:
            return
        with suppress(ProtocolError, ConnectionAlreadyClosedError):
            await self._see_final_state()
        truncated = self.max_loops is not None and self.state.game_loop >= self.max_loops
        await self._put(terminated=not truncated, truncated=truncated)

    def _seen(self) -> tuple[sc_pb.ResponseGameInfo, sc_pb.Observation]:
        """The map's description and the newest observation, as the game sent them."""
        return self.game_info._proto, self.state.observation

    async def _see_final_state(self) -> None:
        """python-sc2 ends without showing the bot the last observation; look at it here."""
        response = await self.client.observation()
        state = GameState(response.observation)
        if state.game_loop > self.state.game_loop:
            info = sc_pb.Response(game_info=self.game_info._proto)
            self._prepare_step(state, info)

    async def _put(self, *, terminated: bool, truncated: bool) -> None:
        score = self.state.score.score
        first = self._last_score is None
        self.score_change = 0.0 if self._last_score is None else float(score - self._last_score)
        self._last_score = score
        self.episode_over = terminated or truncated
        self._pair.put(
            Transition(
                await resolve(self.observe()),
                0.0 if first else float(await resolve(self.reward())),
                terminated,
                truncated,
                await resolve(self.info()),
                await masks_of(self),
            )
        )

    @property
    def _pair(self) -> QueuePair:
        assert self.queue_pair is not None
        return self.queue_pair
