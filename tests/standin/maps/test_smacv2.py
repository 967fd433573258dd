"""SMACv2's map: units by debug command, enemies that hunt, the real map, and SMACv2's package."""

from __future__ import annotations

import numpy as np
import pytest
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.map_reader.fields import ScenarioError
from sc2standin.map_reader.real_map import read_scenario
from sc2standin.map_reader.scenario import Hunt
from tests.peers.run_smac import OF_SMACV2, differences
from tests.standin.maps.test_smac import COPY, begin_on, real_map, team
from tests.standin.sessions import against, apart

FLAT = OF_SMACV2 / "32x32_flat.SC2Map"
MARINE, MARAUDER, MEDIVAC, BANELING = 48, 51, 54, 9
COPIES = sorted(COPY)
"""SMACv2's order of the client's types, which are the last ones of the game."""


def begin(session, content: bytes | None = None, seed: int = 1) -> None:
    begin_on(session, content or FLAT.read_bytes(), against(sc_pb.VeryHard), seed)


def copy(session, name: str) -> int:
    """The id of a copy, as SMACv2 finds it."""
    asked = session.ask(data=sc_pb.RequestData(unit_type_id=True))
    return len(asked.data.units) - len(COPIES) + COPIES.index(name)


def create(session, *units: tuple[int, int, float, float]) -> None:
    """Units of a type and an owner at a place, with the next loop."""
    session.create(*units)
    session.step()


def test_the_last_nine_types_are_the_copies(offline):
    begin(offline)
    units = offline.ask(data=sc_pb.RequestData(unit_type_id=True)).data.units
    assert [unit.name for unit in units[-9:]] == [f"{name}_RL" for name in COPIES]
    assert [unit.unit_id for unit in units] == list(range(len(units)))


def test_the_map_is_empty_and_goes_on_without_units(offline):
    begin(offline)
    assert not offline.observe().raw_data.units
    create(offline, (copy(offline, "Marine"), 1, 10, 10), (MARINE, 2, 25, 25))
    offline.kill(offline.observe().raw_data.units)
    offline.step(2)
    assert not offline.observe().raw_data.units, "nothing begins anew"
    assert offline.state.status.name == "IN_GAME"


def test_enemies_attack_the_nearest_within_half_a_second(offline):
    begin(offline)
    marine = copy(offline, "Marine")
    create(offline, (marine, 1, 4, 16), (marine, 1, 30, 30), (MARINE, 2, 28, 16))
    (enemy,) = team(offline, 2)
    near = min(team(offline, 1), key=lambda unit: apart(unit, enemy))
    offline.step(8)
    (moved,) = team(offline, 2)
    assert apart(moved, near) < apart(enemy, near), "it comes"
    while len(team(offline, 1)) > 1:
        offline.step(8)
        assert offline.state.playing().world.loop < 600
    assert team(offline, 1)[0].pos.x < 5, "the nearer one was killed first"
    while team(offline, 1):
        offline.step(8)
        assert offline.state.playing().world.loop < 1600
    assert team(offline, 2), "the team only fires when it is ordered to"


def test_who_cannot_hit_the_nearest_waits(offline):
    begin(offline)
    create(
        offline,
        *[(copy(offline, "Medivac"), 1, 16, 16), (copy(offline, "Marine"), 1, 2, 2)],
        *[(MARAUDER, 2, 30, 30), (MEDIVAC, 2, 29, 29)],
    )
    before = [(unit.pos.x, unit.pos.y) for unit in team(offline, 2)]
    offline.step(80)
    assert [(unit.pos.x, unit.pos.y) for unit in team(offline, 2)] == before


def test_units_are_those_of_smacs_maps(offline):
    begin(offline)
    create(offline, (BANELING, 2, 16, 16))
    (made,) = offline.state.playing().world.units
    assert made.type.name == "Baneling_Liberty"
    answer = offline.ask(
        debug=sc_pb.RequestDebug(
            debug=[debug_pb.DebugCommand(create_unit=debug_pb.DebugCreateUnit(unit_type=4321))]
        )
    )
    assert "Unknown unit type 4321" in answer.error[0]


def test_stacked_units_part_and_a_seed_repeats(session_for):
    def play() -> list[raw_pb.Unit]:
        session = session_for()
        begin(session, seed=3)
        own = [(copy(session, "Zealot"), 1, 16, 16)] * 10
        create(session, *own, *[(73, 2, 20, 20)] * 10)
        session.step(40)
        return list(session.observe().raw_data.units)

    units = play()
    places = {(unit.pos.x, unit.pos.y) for unit in units}
    assert len(places) == len(units)
    assert [unit.SerializeToString() for unit in units] == [
        unit.SerializeToString() for unit in play()
    ]


SCRIPT = b"""
bool gt_Attack_Func (bool testConds, bool runActions) {
    UnitIssueOrder(one, OrderTargetingUnit(AbilityCommand("attack", 0), UnitGroupClosestToPoint(
all, UnitGetPosition(one))), c_orderQueueReplace);
}
void gt_Attack_Init () {
    gt_Attack = TriggerCreate("gt_Attack_Func");
    TriggerAddEventTimePeriodic(gt_Attack, PERIOD, c_timeGame);
}
"""


def test_the_real_map_reads_as_ours(offline):
    flat = np.full((32, 32), 64, "<u2").tobytes(), np.full((32, 32), 2, "u1").tobytes()
    header = b"CLIF" + bytes(4) + (32).to_bytes(4, "little") * 2 + bytes(16)
    flags = b"LFCT" + bytes(20) + (32).to_bytes(4, "little") * 2
    content = real_map(
        MapScript=SCRIPT.replace(b"PERIOD", b"0.5"),
        Objects=b"<PlacedObjects/>",
        t3SyncCliffLevel=header + flat[0],
        t3CellFlags=flags + flat[1],
    )
    assert differences(read_scenario(content), read_scenario(FLAT.read_bytes())) == []
    assert read_scenario(content).rules == (Hunt(8),)
    begin(offline, content)
    create(offline, (copy(offline, "Marine"), 1, 10, 10))


@pytest.mark.parametrize("period", [b"0.01", b"1000"])
def test_a_period_that_cannot_be_says_why(period):
    with pytest.raises(ScenarioError, match="look for a target every"):
        read_scenario(real_map(MapScript=SCRIPT.replace(b"PERIOD", period)))
