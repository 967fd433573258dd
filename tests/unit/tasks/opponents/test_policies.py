"""Policies and functions behind a queue pair."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from gymnasium import spaces

from sc2pool.errors import ActionError
from sc2pool.tasks.opponents.policies import FunctionPair, PredictPair, SharedPair, action_of
from sc2pool.tasks.queue_pair import Transition
from tests.unit.tasks.opponents.conftest import FOUR, answer


def shown(value: float, masks=None) -> Transition:
    return Transition(np.array([value]), 0.5, False, False, {}, masks)


class Masked:
    """Takes the first possible action, and counts its calls in its state."""

    def predict(
        self, observation, state=None, episode_start=None, deterministic=False, action_masks=None
    ):
        assert episode_start.tolist() == [state is None]
        return np.array(np.argmax(action_masks)), (state or 0) + 1


def test_a_policy_gets_masks_and_its_own_state():
    pair = PredictPair(Masked(), FOUR, deterministic=True)
    for wanted in (2, 0, 3):
        assert answer(pair, shown(0.0, np.arange(4) == wanted)) == wanted
    assert (pair.steps, pair.episode_return) == (3, 1.5)


async def later(observation):
    await asyncio.sleep(0)
    return int(observation[0])


@pytest.mark.parametrize("function", [lambda observation: int(observation[0]), later])
def test_a_function_may_be_async(function):
    assert answer(FunctionPair(function, FOUR), shown(3.0)) == 3


@pytest.mark.parametrize("action", [4, -1, None, "left", [1, 2]])
def test_a_function_must_act_in_the_space(action):
    with pytest.raises(ActionError, match=r"is not in Discrete\(4\)"):
        answer(FunctionPair(lambda _: action, FOUR))


def test_an_action_has_the_spaces_dtype_and_that_of_a_box_is_clipped():
    assert type(action_of(FOUR, np.array(3))) is np.int64
    box = spaces.Box(-1.0, 1.0, (2,), np.float32)
    clipped = action_of(box, np.array([2.0, -0.5]))
    assert (clipped.tolist(), clipped.dtype) == ([1.0, -0.5], np.float32)


def test_one_policy_plays_all_agents_of_a_team():
    """Each agent has a state of its own: the policy checks it."""
    policy = Masked()
    pair = SharedPair([PredictPair(policy, FOUR, deterministic=True) for _ in range(3)])
    for _ in range(2):
        pair.put_rows([shown(0.0, np.arange(4) == wanted) for wanted in (3, 1, 2)])
        assert asyncio.run(pair.get_actions()) == [3, 1, 2]
    with pytest.raises(ValueError, match="zip"):
        pair.put_rows([shown(0.0)])


def test_a_shared_pair_of_one():
    pair = SharedPair([FunctionPair(lambda observation: int(observation[0]), FOUR)])
    assert answer(pair, shown(2.0)) == 2
