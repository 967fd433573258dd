"""Opponents: trained policies and python-sc2's bots.

A queue pair gives a trained policy the newest transition, from which the policy predicts the
action. A policy is any object with SB3's `predict`; neither SB3 nor torch is imported.

A bot of python-sc2 plays its side of the match by itself. A bot can be given in three ways:

* `MyBot`, a bot's class: each episode has a new object of the class.
* `MyBot(arguments)`, an object: each episode has a copy of the object.
* `Bot(Race.Zerg, MyBot(), name="…")`, python-sc2's player: it has a race and a name of its own.

Rules: python-sc2 is not imported here, because a program that has a bot has imported it already. A
bot needs neither the task's observations nor its actions: it sees and commands its own game.
"""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from gymnasium import spaces

from sc2pool.config import race_number
from sc2pool.errors import ActionError, ConfigError
from sc2pool.tasks.player import Episode
from sc2pool.tasks.queue_pair import PolicyPair, QueuePair, Transition
from sc2pool.tasks.task import TaskDefinition

if TYPE_CHECKING:
    from sc2.bot_ai import BotAI


class Policy(Protocol):
    """The method that all SB3 models (PPO, A2C, DQN, SAC, MaskablePPO, RecurrentPPO, …) have."""

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[Any, Any]:
        """The action for one observation, and the next state of a recurrent policy.

        If `predict` has a parameter `action_masks`, it gets the task's masks, (n,) bool.
        """
        ...


class PredictPair(QueuePair):
    """A queue pair whose actions come from a policy's `predict` instead of a learner."""

    def __init__(self, policy: Policy, space: spaces.Space[Any], deterministic: bool) -> None:
        self._policy = policy
        self._space = space
        self._deterministic = deterministic
        self._takes_masks = "action_masks" in inspect.signature(policy.predict).parameters
        self._state: Any = None
        self._last: Transition | None = None
        self.steps = 0
        self.episode_return = 0.0

    def put(self, transition: Transition) -> None:
        self._last = transition
        self.episode_return += transition.reward

    async def get_action(self) -> Any:
        assert self._last is not None, "a transition is put before an action is gotten"
        return action_of(
            self._space, self._predict(self._last.observation, self._last.action_masks)
        )

    def _predict(self, observation: Any, action_masks: Any, n: int = 1) -> Any:
        """The policy's action, or the actions for a batch of n observations."""
        masks = {"action_masks": action_masks} if self._takes_masks else {}
        predicted, self._state = self._policy.predict(
            observation,
            state=self._state,
            episode_start=np.full(n, self.steps == 0),
            deterministic=self._deterministic,
            **masks,
        )
        self.steps += 1
        return predicted


class FunctionPair(PolicyPair):
    """A queue pair whose actions come from a function of the observation, and are checked."""

    def __init__(self, function: Any, space: spaces.Space[Any]) -> None:
        super().__init__(function)
        self._space = space

    async def get_action(self) -> Any:
        return action_of(self._space, await super().get_action())


class SharedPair(QueuePair):
    """A team's queue pairs, one per agent, because each agent has its own state or random draws."""

    def __init__(self, pairs: Sequence[QueuePair]) -> None:
        self._pairs = pairs

    def put(self, transition: Transition) -> None:
        self.put_rows([transition])

    async def get_action(self) -> Any:
        (action,) = await self.get_actions()
        return action

    def put_rows(self, transitions: Sequence[Transition]) -> None:
        for pair, transition in zip(self._pairs, transitions, strict=True):
            pair.put(transition)

    async def get_actions(self) -> Sequence[Any]:
        return [await pair.get_action() for pair in self._pairs]


def action_of(space: spaces.Space[Any], predicted: Any) -> Any:
    """The action in the space's dtype, clipped for a Box; ActionError if it is not in the space."""
    action = predicted
    if isinstance(space, spaces.Box):
        action = np.clip(predicted, space.low, space.high)
    if space.dtype is not None:
        try:
            action = np.asarray(action, space.dtype)[()]
        except (TypeError, ValueError):
            raise ActionError(f"the policy's action {predicted!r} is not in {space}") from None
    if not space.contains(action):
        raise ActionError(f"the policy's action {predicted!r} is not in {space}")
    return action


@dataclass(frozen=True)
class PlainBot:
    """A bot that plays one episode.

    Attributes:
        bot: a new bot.
        race: the bot's race, a `common_pb2.Race` value, or None for the task's race.
    """

    bot: BotAI
    race: int | None = None


@dataclass(frozen=True)
class BotOpponent:
    """Plays each episode with a new object of a bot's class, or with a copy of a bot; `PlainBot`
    describes `race`."""

    name: str
    bot: type[BotAI] | BotAI
    race: int | None = None

    def begin(self, episode: Episode) -> tuple[str, PlainBot]:  # noqa: ARG002
        bot = self.bot() if isinstance(self.bot, type) else copy.deepcopy(self.bot)
        return self.name, PlainBot(bot, self.race)


def bot_opponent(opponent: Any) -> BotOpponent | None:
    """The opponent for a python-sc2 bot, else None; ConfigError for an `RLBotAI` or empty `Bot`."""
    bots, players = (sys.modules.get(f"sc2.{name}") for name in ("bot_ai", "player"))
    if bots is None:
        return None
    bot, race, name = opponent, None, None
    if players is not None and isinstance(opponent, players.Bot):
        bot, race, name = opponent.ai, race_number(opponent.race), opponent.name
        if bot is None:
            raise ConfigError(f"opponent={opponent!r} has no bot: its ai is None")
    bot_class = bot if isinstance(bot, type) else type(bot)
    if not issubclass(bot_class, bots.BotAI):
        return None
    if issubclass(bot_class, TaskDefinition):
        raise ConfigError(
            f"opponent must act by itself, but {bot_class.__name__} is an RLBotAI: give the policy "
            f"that plays it"
        )
    return BotOpponent(name or bot_class.__name__, bot, race)
