"""What a bot sees is the same, whether python-sc2 sorts the units or the `UnitSorter` does."""

from __future__ import annotations

import random
from typing import Any

import pytest
from s2clientprotocol import data_pb2
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

from sc2pool.players import unit_sorter
from sc2pool.players.bots import prepare_step
from sc2pool.players.unit_sorter import UnitSorter

STRUCTURES = [
    UnitTypeId.NEXUS,
    UnitTypeId.HATCHERY,
    UnitTypeId.COMMANDCENTER,
    UnitTypeId.BARRACKS,
    UnitTypeId.BARRACKSTECHLAB,
    UnitTypeId.REACTOR,
    UnitTypeId.PYLON,
    *ALL_GAS,
]
UNITS = [
    UnitTypeId.SCV,
    UnitTypeId.PROBE,
    UnitTypeId.DRONE,
    UnitTypeId.LARVA,
    UnitTypeId.MARINE,
    UnitTypeId.ZERGLING,
    UnitTypeId.XELNAGATOWER,
]
KNOWN = [kind.value for kind in (*STRUCTURES, *UNITS)] + [*mineral_ids, *geyser_ids]
STRANGE = 1_999_999
"""A type that the game's data do not have; python-sc2 takes it for neutral units only."""


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
    """An observation of n units of all kinds; without blips and effects if `usual`."""
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
    """All that the bot has of the step, in comparable form."""
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

    monkeypatch.setattr(unit_sorter, "_SORT", _prepare_units)
    assert not UnitSorter(data)._is_known


def test_the_unit_types_are_shown_once(data):
    """python-sc2 sorts one unit for each kind, however many there are."""
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
