"""Tests players: sides and rows, operations on envs, replays, views, and a bot's order of units."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import create_autospec

import numpy as np
import pytest
from gymnasium import spaces
from s2clientprotocol import data_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb
from sc2.bot_ai import BotAI
from sc2.constants import ALL_GAS, FakeEffectID, geyser_ids, mineral_ids
from sc2.data import Attribute, Race
from sc2.game_data import GameData
from sc2.game_info import GameInfo
from sc2.game_state import GameState
from sc2.ids.unit_typeid import UnitTypeId
from sc2.unit import Unit
from sc2.units import Units

from sc2pool.config import ReplayPolicy
from sc2pool.errors import FaultKind, GameFault, ObservationError
from sc2pool.players import bots
from sc2pool.players.bots import UnitSorter, prepare_step
from sc2pool.players.match_episode import as_taken, blamed_on_opponent, rows_of
from sc2pool.players.operations import env_method
from sc2pool.players.replays import Chooser, LastHeld
from sc2pool.players.view import KINDS, UNITS_SHOWN, map_of, view_of
from sc2pool.tasks.marine_duel import MarineDuel
from sc2pool.tasks.player import Episode
from sc2pool.tasks.queue_pair import QueuePair, Transition
from sc2pool.tasks.task import TeamTask
from sc2pool.units import unit_id

# ---- the side whose error it is ------------------------------------------------------------------


FAULT = GameFault(FaultKind.BAD_REPLY, "not the match's game")


@pytest.mark.parametrize(
    ("name", "who"), [(None, "the opponent"), ("number 0", "the opponent 'number 0'")]
)
def test_an_exception_says_that_the_opponent_raised_it(name, who):
    error = ZeroDivisionError("policy")
    with pytest.raises(ZeroDivisionError) as raised, blamed_on_opponent(name):
        raise error
    assert raised.value is error
    assert error.__notes__ == [f"{who} raised it, not the task"]


def test_a_game_fault_is_the_games_if_the_opponent_plays_on_one():
    with pytest.raises(GameFault) as raised, blamed_on_opponent("bot", has_game=True):
        raise FAULT
    assert raised.value is FAULT


# ---- a team's transition as rows -----------------------------------------------------------------


class Two(TeamTask):
    map_name = "3m"
    agents = ("a", "b")
    observation_space = spaces.Box(0, 9, (1,), np.float32)
    action_space = spaces.Discrete(2)
    state_space = spaces.Box(0, 9, (1,), np.float32)
    shares_state = True

    def act(self, action):
        return []

    def observe(self):
        return []

    async def state(self):
        return np.array([7.0], np.float32)


def split(transition: Transition, **how: Any) -> list[Transition]:
    return asyncio.run(rows_of(Two(), transition, **{"with_state": True} | how))


TEAM = Transition(np.array([[1.0], [2.0]]), 3.0, True, False, {"k": 1}, np.eye(2, dtype=bool))


def test_each_agent_gets_its_own_and_the_teams():
    for own, row in zip((1.0, 2.0), split(TEAM), strict=True):
        assert row.observation == {"observation": [own], "state": [7.0]}
        assert row[1:5] == (3.0, True, False, {"k": 1})
    assert [row.action_masks.tolist() for row in split(TEAM)] == [[True, False], [False, True]]
    assert [row.observation.tolist() for row in split(TEAM, with_state=False)] == [[1.0], [2.0]]
    assert [row.action_masks for row in split(TEAM._replace(action_masks=None))] == [None, None]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"observation": np.zeros((3, 1))}, r"observe\(\) .* each of its 2 agents, got 3"),
        ({"observation": None}, r"observe\(\) .* each of its 2 agents, got None"),
        ({"observation": {"a": 1, "b": 2}}, r"each of its 2 agents, got \{'a': 1, 'b': 2\}"),
        ({"observation": np.array(1.0)}, r"each of its 2 agents, got array\(1\.\)"),
        ({"action_masks": [np.ones(2)]}, r"action_masks\(\) .* each of its 2 agents, got 1"),
    ],
)
def test_not_one_for_each(changes, message):
    with pytest.raises(ObservationError, match=message):
        split(TEAM._replace(**changes))


def test_other_tasks_have_one_row():
    task = MarineDuel()
    assert asyncio.run(rows_of(task, TEAM, with_state=True)) == [TEAM]
    assert as_taken(task, [3]) == 3
    assert as_taken(Two(), [3, 4]) == [3, 4]


# ---- operations; contract/classes/test_attributes.py tests them on envs and tasks ----------------


def test_an_attribute_is_no_method():
    with pytest.raises(TypeError, match=r"level of namespace.* must be a method, got 1"):
        env_method(SimpleNamespace(level=1), "level", (), {})


# ---- chosen replays ------------------------------------------------------------------------------


def chosen(policy: ReplayPolicy, *returns: float) -> list[tuple[bool, bool]]:
    chooser = Chooser(policy)
    return [chooser.choose(Episode(number), total) for number, total in enumerate(returns)]


def test_by_number():
    policy = ReplayPolicy(Path(), every=3, best=False)
    assert chosen(policy, *range(7)) == [(number in (0, 3, 6), False) for number in range(7)]


def test_by_return():
    policy = ReplayPolicy(Path())
    returns = (-2.0, -2.0, math.nan, 5.0, 4.0, 5.5)
    best_so_far = (True, False, False, True, False, True)
    assert chosen(policy, *returns) == [(False, is_best) for is_best in best_so_far]


@pytest.mark.parametrize("end", ["terminated", "truncated"])
def test_only_the_last_transition_is_held(end):
    pair = QueuePair.local()
    held = LastHeld(pair)
    for reward in (0.0, 1.5, -0.5):
        held.put(Transition(reward, reward, False, False, {}))
        assert pair.receive(1).observation == reward
    last = Transition("last", 2.0, end == "terminated", end == "truncated", {"a": 1})
    held.put(last)
    assert held.last == [last]
    assert held.episode_return == 3.0
    with pytest.raises(TimeoutError):
        pair.receive(0.0)


def test_the_last_transitions_of_all_rows_are_held():
    pair = create_autospec(QueuePair, instance=True)
    pair.get_actions.return_value = [3, 4]
    held = LastHeld(pair)
    first = [Transition(row, 1.0 - row, False, False, {}) for row in range(2)]
    last = [Transition(row, 2.0 - row, True, False, {}) for row in range(2)]
    held.put_rows(first)
    held.put_rows(last)
    pair.put_rows.assert_called_once_with(first)
    assert held.last == last
    assert held.episode_return == 3.0, "the first row's"
    assert asyncio.run(held.get_actions()) == [3, 4]
    pair.put.assert_not_called()


# ---- views of a game -----------------------------------------------------------------------------


BEACON = unit_id("Beacon_Terran")
MARINE = unit_id("Marine")
MINERAL_SHARD = unit_id("NaturalMinerals")
ROACH = unit_id("Roach")


def unit(unit_type: int, alliance: int, **more) -> raw_pb2.Unit:
    made = raw_pb2.Unit(unit_type=unit_type, alliance=alliance, radius=0.375, **more)
    made.pos.x, made.pos.y = 3.14159, 2.0
    return made


@pytest.mark.parametrize(
    ("shown", "kind", "health"),
    [
        (unit(MARINE, raw_pb2.Self, health=30, health_max=45), "own", 0.67),
        (unit(74, raw_pb2.Ally, health=80, health_max=80, shield_max=80), "ally", 0.5),
        (unit(ROACH, raw_pb2.Enemy, health=145, health_max=145), "enemy", 1.0),
        (unit(BEACON, raw_pb2.Neutral), "beacon", None),
        (unit(MINERAL_SHARD, raw_pb2.Neutral), "minerals", None),
        (unit(341, raw_pb2.Neutral, mineral_contents=900), "minerals", None),
        (unit(342, raw_pb2.Neutral, vespene_contents=2250), "gas", None),
        (unit(886, raw_pb2.Neutral), "neutral", None),
    ],
)
def test_a_unit(shown, kind, health):
    observation = sc_pb.Observation()
    observation.raw_data.units.append(shown)
    (row,) = view_of(observation)["units"]
    assert row == [KINDS.index(kind), shown.unit_type, 3.14, 2.0, 0.38, health]


def test_where_a_unit_is_on_its_way_to():
    walking = unit(MARINE, raw_pb2.Self, health=45, health_max=45)
    walking.orders.add().target_world_space_pos.x = 20.5
    attacking = unit(MARINE, raw_pb2.Self, health=45, health_max=45)
    attacking.orders.add().target_unit_tag = 7
    observation = sc_pb.Observation()
    observation.raw_data.units.extend([walking, attacking])
    first, second = view_of(observation)["units"]
    assert first[6:] == [20.5, 0.0]
    assert len(second) == 6


def test_it_is_bounded():
    observation = sc_pb.Observation()
    observation.raw_data.units.extend([unit(MARINE, raw_pb2.Self)] * (UNITS_SHOWN + 1))
    assert len(view_of(observation)["units"]) == UNITS_SHOWN


def test_a_map_is_told_from_another_by_its_key():
    info = sc_pb.ResponseGameInfo(map_name="One")
    info.start_raw.pathing_grid.data = b"\x01\x02"
    first = map_of(info)["key"]
    assert map_of(info)["key"] == first
    info.start_raw.pathing_grid.data = b"\x01\x03"
    assert map_of(info)["key"] != first


def test_recorded_messages(recorded):
    for info, response in recorded:
        told, shown = map_of(info), view_of(response.observation)
        assert len(json.dumps(shown)) < 20_000
        assert len(json.dumps(told)) < 150_000
        kinds = {KINDS[row[0]] for row in shown["units"]}
        assert {"own", "minerals", "gas"} <= kinds
        # Own units stand on ground that can be walked on, or on their own buildings' footprints.
        grid = told["pathing"]
        bits = np.frombuffer(base64.b64decode(grid["data"]), np.uint8)
        cells = np.unpackbits(bits) if grid["bits"] == 1 else bits
        walkable = cells.reshape(grid["height"], grid["width"])
        workers = [row for row in shown["units"] if row[0] == 0 and row[4] < 0.5]
        assert workers
        assert all(walkable[int(row[3]), int(row[2])] for row in workers)


# ---- the order of a bot's units ------------------------------------------------------------------


BUILT = "NEXUS HATCHERY COMMANDCENTER BARRACKS BARRACKSTECHLAB REACTOR PYLON"
STRUCTURES = [*(UnitTypeId[name] for name in BUILT.split()), *ALL_GAS]
OTHERS = "SCV PROBE DRONE LARVA MARINE ZERGLING XELNAGATOWER"
UNITS = [UnitTypeId[name] for name in OTHERS.split()]
KNOWN = [kind.value for kind in (*STRUCTURES, *UNITS)] + [*mineral_ids, *geyser_ids]
STRANGE = 1_999_999
"""A unit type without game data; python-sc2 accepts it for neutral units only."""


@pytest.fixture
def data() -> GameData:
    structures = {kind.value for kind in STRUCTURES} | geyser_ids
    return GameData(
        sc_pb.ResponseData(
            units=[
                data_pb2.UnitTypeData(
                    unit_id=kind,
                    available=True,
                    attributes=[Attribute.Structure.value] if kind in structures else [],
                )
                for kind in KNOWN
            ]
        )
    )


class Idle(BotAI):
    async def on_step(self, iteration: int) -> None:
        pass


def new_bot(data: GameData, race: Race) -> Idle:
    bot = Idle()
    info = sc_pb.ResponseGameInfo()
    info.start_raw.playable_area.p1.x = info.start_raw.playable_area.p1.y = 1
    bot._prepare_start(None, 1, GameInfo(info), data)
    bot.race = race
    return bot


def seen(rng: random.Random, n: int, *, usual: bool) -> sc_pb.ResponseObservation:
    """An observation of n units of all kinds; if `usual` is true, without blips and effects."""
    response = sc_pb.ResponseObservation()
    raw = response.observation.raw_data
    for tag in rng.sample(range(1, 3 * n + 1), n):
        alliance = rng.choice((1, 1, 2, 3, 3, 4))
        types = [*KNOWN, STRANGE] if alliance == 3 else KNOWN
        if not usual and rng.random() < 0.1:
            types = list(FakeEffectID)
        raw.units.add(
            tag=tag,
            unit_type=rng.choice(types),
            alliance=alliance,
            display_type=rng.choice((1, 1, 2, 3, 4)),
            is_blip=not usual and rng.random() < 0.1,
            vespene_contents=rng.choice((0, 0, 5, 900)),
            health=tag,
        )
    return response


def shown(bot: BotAI) -> dict[str, Any]:
    """Everything that the bot knows in a step, in a form that can be compared."""
    has = {name: value for name, value in vars(bot).items() if not callable(value)}
    return {name: comparable(value) for name, value in has.items() if name not in OTHER}


OTHER = frozenset({"_time_before_step", "game_info", "state"})


def comparable(value: Any) -> Any:
    if isinstance(value, Unit):
        own = {k: v for k, v in vars(value).items() if k not in ("_bot_object", "tag")}
        return type(value), own, value.tag
    if isinstance(value, Units):
        return type(value), [comparable(unit) for unit in value]
    if isinstance(value, dict):
        return {key: comparable(one) for key, one in value.items()}
    if isinstance(value, set):
        return {
            getattr(one, "_proto", one).SerializeToString() if hasattr(one, "_proto") else one
            for one in value
        }
    return value


@pytest.mark.parametrize("usual", [True, False], ids=["usual", "with blips and effects"])
@pytest.mark.parametrize("race", [Race.Terran, Race.Zerg, Race.Protoss, Race.Random])
def test_the_groups_are_those_of_python_sc2(data, race, usual):
    rng = random.Random(f"{race} {usual}")
    sorter = UnitSorter(data)
    theirs, ours = new_bot(data, race), new_bot(data, race)
    theirs.distance_calculation_method = 0
    for _ in range(40):
        response = seen(rng, rng.randrange(60), usual=usual)
        theirs._prepare_step(GameState(response), sc_pb.Response())
        prepare_step(ours, GameState(response), sorter)
        theirs.distance_calculation_method = ours.distance_calculation_method
        assert shown(ours) == shown(theirs)
        assert len(ours.state.effects) == len(theirs.state.effects)
        theirs.distance_calculation_method = 0


def test_a_player_has_no_units_of_unknown_types(data):
    sorter, bot = UnitSorter(data), new_bot(data, Race.Terran)
    response = sc_pb.ResponseObservation()
    response.observation.raw_data.units.add(tag=1, unit_type=STRANGE, alliance=1)
    for _ in range(2):
        with pytest.raises(ValueError, match=str(STRANGE)):
            prepare_step(bot, GameState(response), sorter)


class SortsByItself(Idle):
    def _prepare_units(self) -> None:
        self.all_units = Units([], self)


def test_it_sorts_for_bots_of_the_same_game_that_leave_it_to_python_sc2(data):
    sorter = UnitSorter(data)
    bot = new_bot(data, Race.Terran)
    bot.distance_calculation_method = 0
    assert sorter.can_sort_for(bot)
    assert not UnitSorter(GameData(sc_pb.ResponseData())).can_sort_for(bot)
    bot.distance_calculation_method = 1
    assert not sorter.can_sort_for(bot), "the distances are due with the units"
    other = SortsByItself()
    other.game_data, other.distance_calculation_method = data, 0
    assert not sorter.can_sort_for(other)


def test_a_release_that_looks_at_more_of_a_unit_sorts_by_itself(data, monkeypatch):
    def _prepare_units(bot: BotAI) -> None:
        BotAI._prepare_units(bot)
        bot.units = Units([u for u in bot.units if not u.is_cloaked], bot)

    monkeypatch.setattr(bots, "_SORT", _prepare_units)
    assert not UnitSorter(data)._is_known


def test_the_unit_types_are_shown_once(data):
    """python-sc2 is asked about only one unit of each kind, however many units there are."""
    sorter = UnitSorter(data)
    bot = new_bot(data, Race.Terran)
    asked = []
    learn = sorter._sorted
    sorter._sorted = lambda *given: asked.append(given) or learn(*given)
    for health in (40, 30):
        response = sc_pb.ResponseObservation()
        for tag in range(1, 9):
            marine = {"unit_type": UnitTypeId.MARINE.value, "alliance": 1, "display_type": 1}
            response.observation.raw_data.units.add(tag=tag, health=health, **marine)
        prepare_step(bot, GameState(response), sorter)
    assert len(asked) == 2, "with and without gas"
    assert [unit.health for unit in bot.units] == [30.0] * 8
