"""A trained policy behind a queue pair: it predicts each action from the newest transition.

Rule: a policy is any object with SB3's `predict`; neither SB3 nor torch is imported.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces

from sc2pool.errors import ActionError
from sc2pool.tasks.queue_pair import PolicyPair, QueuePair, Transition


class Policy(Protocol):
    """The method of every SB3 model: PPO, A2C, DQN, SAC, MaskablePPO, RecurrentPPO and others."""

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
    """A queue pair whose learner is a policy's `predict`."""

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
    """A queue pair whose learner is a function of the observation; its actions are checked."""

    def __init__(self, function: Any, space: spaces.Space[Any]) -> None:
        super().__init__(function)
        self._space = space

    async def get_action(self) -> Any:
        return action_of(self._space, await super().get_action())


class SharedPair(QueuePair):
    """The pairs of a team's agents, which all play the same policy.

    Args:
        pairs: one for each agent, because a policy may have its own state or random numbers for
            each agent.
    """

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
    """The action as a task gets it in the pool: in the space's dtype, clipped for a Box.

    Raises:
        ActionError: the action is outside the space.
    """
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
