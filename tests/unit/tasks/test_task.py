"""Tests the definition of a task: attributes, a pool's overrides, actions in flight, and teams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from s2clientprotocol import common_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb
from sc2.data import AIBuild, Difficulty, Race

from sc2pool.config import Computer, GameSetup, Limits
from sc2pool.errors import ConfigError
from sc2pool.players.factory import TaskPlayerSpec
from sc2pool.players.task_spec import TaskSpec
from sc2pool.protocol import LOOPS_PER_S
from sc2pool.tasks.in_flight import ActionInFlight
from sc2pool.tasks.marine_duel import MarineDuel
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from sc2pool.tasks.registry import resolve_task
from sc2pool.tasks.task import Task, TeamTask, agents_of, check_definition, row_space
from sc2pool.tasks.teams.battle_task import smac_task

# ---- class attributes ----------------------------------------------------------------------------


def with_attributes(**attributes: Any) -> type[MoveToBeacon]:
    return type("Odd", (MoveToBeacon,), attributes)


@pytest.mark.parametrize("race", Race)
def test_races_are_numbers_or_members(race):
    for given in (race, race.value):
        task = with_attributes(race_requested=given)
        if race is Race.NoRace:
            with pytest.raises(ConfigError, match="race must be one of Terran"):
                check_definition(task)
        else:
            assert task.game_setup().race == race.value


def test_a_computer_is_given_by_numbers_or_members():
    numbers = Computer(common_pb2.Zerg, sc_pb.Hard, sc_pb.Rush)
    assert Computer(Race.Zerg, Difficulty.Hard, AIBuild.Rush) == numbers
    assert (numbers.race, numbers.difficulty, numbers.build) == (2, 5, 2)
    assert Computer() == Computer(Race.Random, Difficulty.Easy, AIBuild.RandomBuild)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"race": "Zerg"}, r"race must be one of Terran \(1\), .*; got 'Zerg'"),
        ({"race": Difficulty.Easy}, "race must be one of .*; got <Difficulty.Easy: 2>"),
        ({"race": True}, "race must be one of .*; got True"),
        ({"difficulty": 11}, "difficulty must be one of VeryEasy .*; got 11"),
        ({"build": None}, "build must be one of RandomBuild .*; got None"),
    ],
    ids=str,
)
def test_a_computer_of_no_kind(given, told):
    with pytest.raises(ConfigError, match=told):
        Computer(**given)


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        ({"race_requested": 9}, r"task Odd: race must be one of Terran \(1\).*; got 9"),
        ({"opponents": Computer()}, "task Odd: opponents must be a tuple of .*Computer, got Comp"),
        ({"opponents": (Race.Zerg,)}, "task Odd: opponents must be a tuple of .*Race.Zerg"),
        ({"step_mul": 8.0}, "task Odd: step_mul must be a whole number of at least 1, got 8.0"),
        ({"step_mul": 0}, "task Odd: step_mul must be a whole number of at least 1, got 0"),
        ({"step_mul": True}, "task Odd: step_mul must be a whole number of at least 1, got True"),
        ({"max_loops": 0}, "task Odd: max_loops must be a whole number of at least 1, got 0"),
        ({"disable_fog": "no"}, "task Odd: class attribute 'disable_fog' must be a bool, got 'no'"),
        (
            {"metadata": {"render_modes": None}},
            r"task Odd: metadata\['render_modes'\] must be a list of names, got None",
        ),
        ({"metadata": None}, "task Odd: class attribute 'metadata' must be a Mapping, got None"),
        pytest.param(
            {"action_masks": property(len)},
            "task Odd: action_masks must be a method, got <property",
            id="action_masks",  # a name, because the value's repr is not readable
        ),
        ({"players": 3}, "task Odd: players must be 1 or 2, got 3"),
        ({"players": True}, "task Odd: players must be 1 or 2, got True"),
        (
            {"players": 2, "opponents": (Computer(),)},
            "task Odd: a task of two players has no opponents of its own",
        ),
    ],
    ids=str,
)
def test_wrong_attributes(attributes, told):
    with pytest.raises(ConfigError, match=told):
        check_definition(with_attributes(**attributes))


def test_loops_may_be_numpys_integers():
    check_definition(with_attributes(step_mul=np.int64(4), max_loops=np.int32(96)))


def test_a_task_without_its_hooks():
    class Empty(Task):
        map_name = "MoveToBeacon"
        observation_space = action_space = spaces.Discrete(2)

    with pytest.raises(ConfigError, match=r"task Empty must define act\(\), observe\(\)"):
        check_definition(Empty)


def spec(task: type[Task] = MoveToBeacon, **overrides: Any) -> TaskSpec:
    installation: Any = None  # no game is launched
    return TaskSpec(task, installation, Path("x"), Limits(), **overrides)


def test_a_pool_overrides_step_mul_and_max_loops():
    player = TaskPlayerSpec(spec(step_mul=4, max_loops=96)).player()
    assert player.metadata["render_fps"] == 22.4 / 4
    before_the_first_episode = player.target()
    assert (before_the_first_episode.step_mul, before_the_first_episode.max_loops) == (4, 96)
    assert (TaskPlayerSpec(spec()).player().target().step_mul, spec().loops_per_step) == (8, 8)
    assert spec(max_loops=16).overrides == {"max_loops": 16}


def test_a_property_has_no_value_before_the_first_episode():
    target = TaskPlayerSpec(spec()).player().target()
    assert target.map_name == "MoveToBeacon"
    with pytest.raises(
        AttributeError, match=r"MoveToBeacon\.observation has no value before reset"
    ):
        _ = target.observation


class Duel(MoveToBeacon):
    players = 2
    disable_fog = True


def test_two_players_are_two_participants():
    assert Duel.game_setup() == GameSetup("MoveToBeacon", participants=2, disable_fog=True)
    computer = Computer()
    setup = spec(Duel, opponent=computer).setup
    assert (setup.participants, setup.opponents) == (1, (computer,))


# ---- the last action and its delay in the observation --------------------------------------------


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


# ---- the definition of a team --------------------------------------------------------------------


class Pair(TeamTask):
    map_name = "3m"
    agents = ("a", "b")
    observation_space = spaces.Box(0, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)
    state_space = spaces.Box(0, 1, (3,), np.float32)

    def act(self, action):
        return []

    def observe(self):
        return np.zeros((2, 2), np.float32)


@pytest.mark.parametrize("sides", [1, 2])
def test_a_row_is_what_an_agent_sees_and_the_state_if_it_is_shared(sides):
    class Team(Pair):
        players = sides

    class Shared(Team):
        shares_state = True

    assert row_space(resolve_task(Team)) is Pair.observation_space
    assert set(row_space(resolve_task(Shared))) == {"observation", "state"}
    assert Team.game_setup().participants == sides


def test_a_row_of_a_task_without_agents_is_its_observation():
    assert (agents_of(Pair), agents_of(MarineDuel)) == (2, 1)
    assert row_space(MarineDuel) is MarineDuel.observation_space


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        *(
            ({"agents": given}, "agents must be a tuple of at least one")
            for given in ((), ("a", "a"), ["a", "b"], ("a", 1), ("", "b"))
        ),
        ({"state_space": 5}, "state_space must be a Space or None, got 5"),
        (
            {"state_space": None, "shares_state": True},
            "shares_state is True, but the task has no state_space",
        ),
    ],
    ids=str,
)
def test_a_team_that_is_none(attributes, told):
    with pytest.raises(ConfigError, match=f"task Wrong: {told}"):
        resolve_task(type("Wrong", (Pair,), attributes))


def test_a_team_without_a_state_space_has_no_state():
    with pytest.raises(NotImplementedError, match="Pair has no state"):
        Pair().state()
