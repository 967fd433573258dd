"""`RLBotAI`: a task written with python-sc2's `BotAI`.

The user writes `act`, `observe` and `reward`, and can use all of BotAI. sc2pool defines `on_step`,
which puts a transition on the queue pair and gets the next action. Python-sc2 calls `on_step`; the
learner, in another process or thread, calls `env.step()`. Neither blocks the other.

    class Walker(RLBotAI):
        map_name = "MoveToBeacon"
        observation_space = spaces.Box(-1, 1, (2,), np.float32)
        action_space = spaces.Discrete(8)

        def act(self, action): ...
        def observe(self): ...

Rules: each episode has a new object. Every hook may be `async`. No attribute shadows one of
BotAI's. The same class plays in the pool and, with `QueuePair.local()` or a policy, under
python-sc2's `run_game`.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from s2clientprotocol import sc2api_pb2 as sc_pb
from sc2.bot_ai import BotAI
from sc2.data import Result
from sc2.game_state import GameState
from sc2.protocol import ConnectionAlreadyClosedError, ProtocolError

from sc2pool.errors import ConfigError
from sc2pool.tasks.episode_rules import EpisodeRules, awaited
from sc2pool.tasks.queue_pair import PolicyPair, QueuePair
from sc2pool.tasks.task import TaskDefinition


class RLBotAI(TaskDefinition, BotAI):
    """A bot whose actions a learner chooses through its queue pair.

    Args:
        queue_pair: the source of actions and the destination of transitions. The pool passes its
            own.
        policy: a function from an observation to an action, in place of a queue pair. It may be
            `async`. With it the bot plays without a learner.
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
        self.options = {}
        self._rules = EpisodeRules(self)
        self._owns_game = True
        """True under `run_game`: the bot leaves the game at the episode's end. The pool sets it to
        False and ends the game itself."""

    @property
    def episode_over(self) -> bool:
        """True if the episode's last transition has been made."""
        return self._rules.over

    def _end_episode(self) -> None:
        """Make no further transition: the other player of the match has ended the episode."""
        self._rules.over = True

    @abstractmethod
    def act(self, action: Any) -> Awaitable[None] | None:
        """Give the orders that `action` stands for, as any bot does (`unit.move(…)`, `self.do`).

        Orders are sent together with the step; their results are not returned. The return value of
        `act` is ignored.
        """

    async def on_step(self, iteration: int) -> None:  # noqa: ARG002
        """Put the transition of the newest state, and take the next action."""
        self.client.game_step = self.step_mul  # for python-sc2's own loop
        observed_s = time.monotonic()
        await self._put(game_ended=False)
        if self.episode_over:
            if self._owns_game:
                await self.client.leave()
        else:
            action = await self._pair.get_action()
            await awaited(self.act(action))
            self.last_action = action
            self.client.game_step = self.step_mul  # `act` may have changed it
            if self.realtime:  # in the pool, the player sets a more exact value later
                self.delay_s = time.monotonic() - observed_s

    async def on_end(self, game_result: Result) -> None:  # noqa: ARG002
        """Put the last transition, from the game's final state.

        If the task has ended the episode, the last transition has already been put, and the result
        is a tie.
        """
        if self.episode_over:
            return
        with suppress(ProtocolError, ConnectionAlreadyClosedError):
            await self._see_final_state()
        await self._put(game_ended=True)

    def _seen(self) -> tuple[sc_pb.ResponseGameInfo, sc_pb.Observation]:
        """The map's description and the newest observation, as the game sent them."""
        return self.game_info._proto, self.state.observation

    async def _see_final_state(self) -> None:
        """Request the last observation: python-sc2 ends the game without it."""
        # Not `client.observation`: it expects the result again, which the game reports only once.
        response = await self.client._execute(observation=sc_pb.RequestObservation())
        state = GameState(response.observation)
        if state.game_loop > self.state.game_loop:
            info = sc_pb.Response(game_info=self.game_info._proto)
            self._prepare_step(state, info)

    async def _put(self, *, game_ended: bool) -> None:
        state = self.state
        self._pair.put(
            await self._rules.transition(state.game_loop, state.score.score, game_ended=game_ended)
        )

    @property
    def _pair(self) -> QueuePair:
        assert self.queue_pair is not None
        return self.queue_pair
