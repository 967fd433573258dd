"""The last action and its delay as parts of the observation."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from sc2pool.errors import ConfigError
from sc2pool.protocol.game_time import LOOPS_PER_S
from sc2pool.tasks.definition import check_definition
from sc2pool.tasks.in_flight import ActionInFlight
from sc2pool.tasks.task import Task
from sc2pool.tasks.teams.smac.battle_task import smac_task

SEEN = spaces.Box(-1.0, 1.0, (2,), np.float32)


class Plain(Task):
    map_name = "MoveToBeacon"
    observation_space = SEEN
    action_space = spaces.Discrete(3)
    step_mul = 4

    def act(self, action):
        return []

    def observe(self):
        return np.full(2, 0.5, np.float32)


class Awaiting(Plain):
    async def observe(self):
        return np.full(2, -0.5, np.float32)


class OfDicts(Plain):
    action_space = spaces.Dict(a=spaces.Discrete(2))


def in_flight(action_space, base=Plain):
    definition = type("Definition", (base,), {"action_space": action_space})
    return type("InFlight", (ActionInFlight, definition), {})


@pytest.mark.parametrize(
    ("space", "shown", "none", "action"),
    [
        (spaces.Discrete(3), spaces.Discrete(4), 3, np.int64(2)),
        (spaces.Discrete(3, start=-1), spaces.Discrete(4, start=-1), 2, np.int64(-1)),
        (spaces.Discrete(127, dtype=np.int8), spaces.Discrete(128), 127, np.int8(126)),
        (
            spaces.MultiDiscrete([127, 5], np.int8),
            spaces.MultiDiscrete([128, 6]),
            [127, 5],
            np.array([126, 4], np.int8),
        ),
        (spaces.MultiDiscrete([2, 5]), spaces.MultiDiscrete([3, 6]), [2, 5], np.array([1, 0])),
        (spaces.MultiBinary(2), spaces.MultiBinary(2), [0, 0], np.array([1, 0], np.int8)),
        (
            spaces.Box(1.0, 2.0, (1,), np.float32),
            spaces.Box(1.0, 2.0, (1,), np.float32),
            [1.0],
            np.array([1.5], np.float32),
        ),
    ],
)
async def test_every_kind_of_action(space, shown, none, action):
    cls = in_flight(space)
    check_definition(cls)
    assert cls.observation_space["last_action"] == shown
    assert cls.observation_space["observation"] == SEEN
    task = cls()
    first = await task.observe()
    assert cls.observation_space.contains(first)
    assert np.array_equal(first["last_action"], none)
    assert first["delay_periods"] == 0
    task.last_action, task.delay_s = action, 2 * 4 / LOOPS_PER_S
    later = await task.observe()
    assert cls.observation_space.contains(later)
    assert np.array_equal(later["last_action"], action)
    assert later["delay_periods"] == pytest.approx([2.0])
    assert later["observation"].tolist() == [0.5, 0.5]


async def test_an_observation_that_is_awaited():
    task = in_flight(spaces.Discrete(3), Awaiting)()
    assert (await task.observe())["observation"].tolist() == [-0.5, -0.5]


def test_a_class_made_from_it_is_as_it_is():
    base = in_flight(spaces.Discrete(3))
    derived = type("Derived", (base,), {"step_mul": 2})
    assert derived.observation_space is base.observation_space
    assert Plain.observation_space is SEEN, "the task itself is not touched"


@pytest.mark.parametrize(
    ("bases", "told"),
    [
        ((Plain, ActionInFlight), "Wrong: ActionInFlight must be the first"),
        ((ActionInFlight, smac_task("3m")), "Wrong: ActionInFlight is not for the agents of a"),
        ((ActionInFlight, OfDicts), "cannot show actions of Dict"),
    ],
)
def test_tasks_that_cannot_have_it(bases, told):
    with pytest.raises(ConfigError, match=told):
        type("Wrong", bases, {})
