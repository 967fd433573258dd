"""`Melee`: any state gives an observation in its space, and commands for own units only."""

from __future__ import annotations

import numpy as np
import pytest
from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.protocol.observed import Observed
from sc2pool.tasks.melee import melee
from sc2pool.tasks.melee.images import MeleeImage
from sc2pool.tasks.melee.melee import Melee
from sc2pool.tasks.melee.scripted import play_melee
from sc2pool.tasks.minigames.geometry import PlayableArea
from sc2pool.tasks.minigames.towns.unit_types import (
    BARRACKS,
    COMMAND_CENTER,
    MARINE,
    MINERAL_FIELD,
    SCV,
    SUPPLY_DEPOT,
)
from sc2pool.tasks.registry import resolve
from sc2pool.units import Kind

OWN, ENEMY, NEUTRAL = raw_pb2.Self, raw_pb2.Enemy, raw_pb2.Neutral
TASKS = (Melee, MeleeImage)
TYPES = (COMMAND_CENTER, SUPPLY_DEPOT, BARRACKS, SCV, MARINE)


def _random_units(unit, rng: np.random.Generator) -> list[raw_pb2.Unit]:
    kinds = [Kind(one, side) for one in TYPES for side in (OWN, ENEMY)]
    kinds.append(Kind(MINERAL_FIELD, NEUTRAL))
    return [
        unit(
            kind,
            *rng.uniform(-20, 80, 2).tolist(),
            tag=i * 40 + k + 1,
            radius=float(rng.choice([0.375, 2.0])),
            build_progress=float(rng.choice([0.5, 1.0])),
        )
        for i, kind in enumerate(kinds)
        for k in range(rng.choice([0, 1, 3, 30]))
    ]


@pytest.mark.parametrize("task_class", TASKS)
def test_observations_and_commands_of_random_states(task_class, unit, begin):
    rng = np.random.default_rng(7)
    for _ in range(40):
        units = _random_units(unit, rng)
        task = begin(task_class, *units)
        seen = task.observation
        seen.player_common.minerals, seen.player_common.food_cap = 1000, 50
        task.observation = seen
        assert task.observation_space.contains(task.observe())
        own = {one.tag for one in units if one.alliance == OWN}
        masks = task.action_masks()
        for action in range(melee.N_ACTIONS):
            commands = list(task.act(action))
            assert masks[action] or not commands
            for command in commands:
                assert command.unit_tags
                assert set(command.unit_tags) <= own


@pytest.mark.parametrize("task_class", TASKS)
def test_nothing_on_the_map_and_no_area(task_class, begin):
    task = begin(task_class, within=PlayableArea(0, 0, 0, 0))
    assert task.observation_space.contains(task.observe())
    assert task.action_masks().tolist() == [True] + [False] * (melee.N_ACTIONS - 1)
    assert all(list(task.act(action)) == [] for action in range(melee.N_ACTIONS))


def test_observations_of_real_games(recorded):
    for info, response in recorded:
        task = Melee()
        task.game_info, task.observation = info, response.observation
        task.on_start()
        task.observe()
        assert len(task.town.all(MINERAL_FIELD)) == 8, info.map_name
        masks = task.action_masks()
        assert masks[melee.TRAIN_SCV]
        assert not masks[[melee.BUILD_DEPOT, melee.ATTACK]].any()
        assert task.front._starts, "where the opponent began"


@pytest.mark.parametrize("task_class", TASKS)
def test_definitions(task_class):
    assert resolve(task_class.__name__) is task_class
    (opponent,) = task_class.game_setup().opponents
    assert opponent.difficulty == sc_pb.VeryEasy


def test_the_reward_of_what_was_destroyed_and_of_the_result(begin):
    task = begin(Melee)
    assert task.reward() == 0
    seen = sc_pb.Observation()
    seen.player_common.player_id = 1
    seen.score.score_details.killed_value_units = 500
    task.observation = seen
    assert task.reward() == pytest.approx(0.05)
    assert task.reward() == 0
    for result, worth in ((sc_pb.Victory, 1), (sc_pb.Defeat, -1), (sc_pb.Tie, 0)):
        results = [
            sc_pb.PlayerResult(player_id=2, result=sc_pb.Victory),
            sc_pb.PlayerResult(player_id=1, result=result),
        ]
        reply = sc_pb.ResponseObservation(observation=seen, player_result=results)
        task.lazy_observation = Observed.of(reply)
        assert task.reward() == worth


def test_the_scripted_player_does_what_is_missing():
    nothing = np.zeros(melee.OBSERVATION_SIZE, dtype=np.float32)
    assert play_melee(nothing) == melee.WAIT

    def chosen(**values: float) -> int:
        observation = nothing.copy()
        places = {"minerals": 0, "free": 3, "workers": 4, "idle": 5, "depots": 7, "barracks": 9}
        places |= {"empty": 11, "marines": 12, "idle_marines": 13, "threats": 15}
        for name, value in values.items():
            observation[places[name]] = value
        return play_melee(observation)

    assert chosen(idle=0.1) == melee.GATHER_MINERALS
    assert chosen(minerals=0.1) == melee.BUILD_DEPOT
    assert chosen(minerals=0.1, free=0.5) == melee.TRAIN_SCV
    assert chosen(minerals=0.15, free=0.5, workers=0.4, depots=0.1) == melee.BUILD_BARRACKS
    assert chosen(minerals=0.05, free=0.9, workers=0.4, empty=0.1) == melee.TRAIN_MARINE
    assert chosen(marines=0.1, idle_marines=0.1, free=0.9) == melee.WAIT
    assert chosen(marines=0.2, idle_marines=0.1) == melee.ATTACK
    assert chosen(marines=0.1, idle_marines=0.1, threats=0.1) == melee.ATTACK
