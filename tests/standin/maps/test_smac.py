"""SMAC's scenarios: the rules of its maps, its units, and real maps."""

from __future__ import annotations

import json
import math
import re
import struct
import time
from collections.abc import Sequence

import numpy as np
import pytest
from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.tasks.teams.scenarios import SCENARIOS
from sc2standin.map_reader.fields import ScenarioError
from sc2standin.map_reader.real_map import read_scenario
from sc2standin.mpq import pack
from sc2standin.simulation import paths
from sc2standin.simulation.rules import STRAY
from tests.peers.run_smac import MAPS, differences
from tests.standin.maps.test_map_files import in_sectors
from tests.standin.sessions import ALONE, against, apart, command

MOVE, ATTACK, HEAL = 16, 23, 386
MARAUDER, MARINE, MEDIVAC, ZERGLING = 51, 48, 54, 105
COPY = {
    **{"Colossus": 2057, "Stalker": 2058, "Zealot": 2059},
    **{"Marauder": 2060, "Marine": 2061, "Medivac": 2062},
    **{"Baneling": 2063, "Zergling": 2064, "Hydralisk": 2065},
}
"""The ids of the client's types, in SMAC's order."""


def begin(session, scenario: str, seed: int = 1) -> None:
    begin_on(session, (MAPS / f"{scenario}.SC2Map").read_bytes(), against(sc_pb.VeryHard), seed)


def begin_on(
    session, content: bytes, players: Sequence[sc_pb.PlayerSetup] = ALONE, seed: int = 1
) -> None:
    """Begin a game as SMAC does: it sends the map's content, and asks for no score."""
    interface = sc_pb.InterfaceOptions(raw=True)
    session.start(content, seed, interface=interface, player_setup=players)


def team(session, owner: int) -> list[raw_pb.Unit]:
    return [unit for unit in session.observe().raw_data.units if unit.owner == owner]


def attack_nearest(session) -> None:
    """Act like SMAC's scripted player, but without its memory of targets."""
    enemies = team(session, 2)
    session.act(
        *(
            command(unit, ATTACK, target=min(enemies, key=lambda e: apart(unit, e)).tag)
            for unit in team(session, 1)
        )
    )


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_teams_stand_apart_on_the_ground(offline, scenario):
    begin(offline, scenario)
    mine, enemies = team(offline, 1), team(offline, 2)
    teams = SCENARIOS[scenario]
    assert (len(mine), len(enemies)) == (teams.n_agents, teams.n_enemies)
    assert {unit.unit_type for unit in mine} <= set(COPY.values())
    assert max(unit.unit_type for unit in enemies) < min(COPY.values())
    terrain = offline.state.playing().terrain
    flyers = (MEDIVAC, COPY["Medivac"])
    for unit in mine + enemies:
        assert terrain.walkable(unit.pos.x, unit.pos.y)
        strayed = 2 * math.hypot(STRAY, STRAY)
        touching = [o for o in mine + enemies if apart(unit, o) < unit.radius + o.radius - strayed]
        air = unit.unit_type in flyers
        touching = [o for o in touching if (o.unit_type in flyers) == air and o.tag != unit.tag]
        strides = (4, COPY["Colossus"])
        if unit.unit_type not in strides:
            assert not [o for o in touching if o.unit_type not in strides]


@pytest.mark.parametrize("scenario", ["8m", "2s3z", "3s5z", "1c3s5z", "MMM", "bane_vs_bane"])
def test_equal_sides_stand_alike(offline, scenario):
    """Both sides need equal formations: a side with more units in front would win most battles."""
    begin(offline, scenario)
    mine = [(one.pos.x, one.pos.y) for one in team(offline, 1)]
    theirs = [(32 - one.pos.x, 32 - one.pos.y) for one in team(offline, 2)]
    for (x, y), (other_x, other_y) in zip(mine, theirs, strict=True):
        assert max(abs(x - other_x), abs(y - other_y)) <= 2 * STRAY + 1e-4


def test_every_file_is_installed_where_smac_looks(installation):
    placed = installation / "Maps" / "SMAC_Maps"
    assert {path.stem for path in placed.iterdir()} == {*SCENARIOS, "32x32_flat"}


def test_the_grids_are_what_smac_reads(offline):
    """SMAC reads a byte as eight cells of a column; on 3m, units can walk from y = 8 to 24."""
    begin(offline, "3m")
    start = offline.game_info().start_raw
    assert (start.map_size.x, start.map_size.y) == (32, 32)
    assert (start.playable_area.p0.x, start.playable_area.p1.x) == (0, 32)
    cells = np.unpackbits(np.frombuffer(start.pathing_grid.data, np.uint8)).reshape(32, 32)
    assert cells[8:24].all()
    assert not cells[:8].any()
    assert not cells[24:].any()
    assert len(start.terrain_height.data) == 32 * 32


def test_the_clients_units_fire_only_when_they_are_ordered_to(offline):
    begin(offline, "3m")
    for _ in range(25):
        offline.step(8)
    assert all(enemy.health == 45 for enemy in team(offline, 2))
    begin(offline, "3m")
    for _ in range(12):
        attack_nearest(offline)
        offline.step(8)
    assert sum(enemy.health for enemy in team(offline, 2)) < 3 * 45


def test_the_enemies_come_and_win_against_nobody(offline):
    begin(offline, "8m")
    while team(offline, 1):
        offline.step(8)
        assert offline.state.playing().world.loop < 1000
    assert len(team(offline, 2)) == 8
    assert offline.state.status.name == "IN_GAME", "the game never ends by itself"


def test_the_battle_begins_anew_when_nobody_is_left(offline):
    begin(offline, "2s3z")
    first = {unit.tag: (unit.pos.x, unit.pos.y) for unit in offline.observe().raw_data.units}
    offline.step(80)
    offline.kill(team(offline, 1))
    offline.step(2)
    assert not team(offline, 1), "one side has won; nothing begins anew"
    assert len(team(offline, 2)) == 5
    offline.kill(team(offline, 2))
    offline.step(2)
    units = offline.observe().raw_data.units
    assert not {unit.tag for unit in units} & set(first)
    mine = [unit for unit in units if unit.owner == 1]
    places = {(unit.pos.x, unit.pos.y) for unit in mine}
    assert not places & set(first.values()), "no battle begins as the one before"
    assert all(min(math.dist(one, other) for other in first.values()) < 4 * STRAY for one in places)
    assert all(unit.health == unit.health_max and unit.shield == unit.shield_max for unit in units)
    before = min(unit.pos.x for unit in team(offline, 2))
    offline.step(8)
    assert min(unit.pos.x for unit in team(offline, 2)) < before, "the enemies attack again"


@pytest.mark.parametrize("scenario", ["corridor", "MMM"])
def test_what_is_kept_of_the_ways_changes_nothing(session_for, monkeypatch, scenario):
    def play() -> bytes:
        session = session_for()
        begin(session, scenario)
        session.step(240)
        return session.ask_bytes(observation=sc_pb.RequestObservation())

    known = play()
    monkeypatch.setattr(paths, "MOST_WAYS", 3)
    paths.detours_on.cache_clear()
    assert play() == known


def test_a_crowd_finds_no_room_and_stays_on_the_ground(offline):
    content = json.loads((MAPS / "3m.SC2Map").read_text())
    rows = ["#" * 32] * 14 + ["#" * 14 + "22" + "#" * 16] * 2 + ["#" * 32] * 16
    group = {"type": "Zealot_RL", "owner": 1, "count": 9}
    place = {"kind": "cluster", "centre": [15, 17]}
    changes = {"ground": rows, "units": [group | {"place": place}]}
    begin_on(offline, json.dumps(content | changes).encode())
    offline.step(80)
    units = offline.state.playing().world.units
    assert len(units) == 9
    assert all(14 <= unit.x <= 16 and 16 <= unit.y <= 18 for unit in units)


def test_a_medivac_heals_for_energy_when_it_is_ordered_to(offline):
    begin(offline, "MMM")
    game = offline.state.playing()
    kill = [unit.tag for unit in team(offline, 2)]
    (medivac,) = offline.units(COPY["Medivac"])
    assert (medivac.energy, medivac.energy_max, medivac.is_flying) == (50, 200, True)
    marine, marauder = offline.units(COPY["Marine"])[0], offline.units(COPY["Marauder"])[0]
    assert offline.order(medivac, HEAL, target=marine) == error_pb.RequiresHealTarget
    offline.kill(kill)
    offline.set_value(marine, "Life", 15)
    offline.step(16)
    assert game.world.by_tag[marine.tag].life == 15, "it is passive"
    assert offline.order(medivac, HEAL, target=marine) == 1
    offline.step(16)
    assert game.world.by_tag[marine.tag].life == pytest.approx(15 + 9)
    energy = game.world.by_tag[medivac.tag].energy
    assert energy == pytest.approx(50 + 2 * 0.5625 + 1 / 16 * 0.5625 - 9 / 3, abs=0.1)
    offline.step(160)
    assert game.world.by_tag[marine.tag].life == 45
    (medivac,) = offline.units(COPY["Medivac"])
    assert not medivac.orders
    assert offline.order(marauder, ATTACK, target=medivac) == error_pb.CantTargetFriendlyUnits


def test_an_enemy_medivac_heals_by_itself(offline):
    begin(offline, "MMM")
    enemy = next(unit for unit in team(offline, 2) if unit.unit_type == MARAUDER)
    (medivac,) = [unit for unit in team(offline, 2) if unit.unit_type == MEDIVAC]
    offline.set_value(enemy, "Life", 60)
    offline.step(48)
    seen = {unit.tag: unit for unit in team(offline, 2)}
    assert 75 < seen[enemy.tag].health < 60 + 48 * 9 / 16
    assert seen[medivac.tag].energy < 50


def test_a_ground_weapon_cannot_be_aimed_at_a_flyer(offline):
    begin(offline, "MMM")
    (medivac,) = [unit for unit in team(offline, 2) if unit.unit_type == MEDIVAC]
    marauder, marine = offline.units(COPY["Marauder"])[0], offline.units(COPY["Marine"])[0]
    results = offline.act(
        command(marauder, ATTACK, target=medivac),
        command(marine, ATTACK, target=medivac),
    )
    assert results == [error_pb.CantTargetAirUnits, 1]


def test_a_colossus_hits_a_line_of_enemies_and_walks_over_cliffs(offline):
    begin(offline, "2c_vs_64zg")
    colossi = offline.units(COPY["Colossus"])
    offline.order(colossi, MOVE, (16, 30))
    before = len(offline.units(ZERGLING))
    offline.step(8)
    hits = []
    for _ in range(12):
        attack_nearest(offline)
        lives = {unit.tag: unit.health for unit in offline.units(ZERGLING)}
        offline.step(1)
        after = {unit.tag: unit.health for unit in offline.units(ZERGLING)}
        hits.append(sum(after.get(tag, 0.0) < life for tag, life in lives.items()))
    assert max(hits) > len(colossi), "a shot hits more than its target"
    assert len(offline.units(ZERGLING)) <= before
    begin(offline, "2c_vs_64zg")
    offline.kill(team(offline, 2))
    offline.order(offline.units(COPY["Colossus"]), MOVE, (16, 8))
    terrain = offline.state.playing().terrain
    over_a_cliff = False
    for _ in range(12):
        offline.step(8)
        units = offline.units(COPY["Colossus"])
        over_a_cliff |= any(not terrain.walkable(u.pos.x, u.pos.y) for u in units)
    assert over_a_cliff
    assert all(abs(u.pos.y - 8) < 1.5 for u in offline.units(COPY["Colossus"]))


def test_zerglings_take_the_ramps(offline):
    begin(offline, "2c_vs_64zg")
    terrain = offline.state.playing().terrain
    for _ in range(20):
        offline.step(8)
        zerglings = offline.state.playing().world.owned_by(2)
        assert all(terrain.walkable(unit.x, unit.y) for unit in zerglings)
    assert max(unit.y for unit in zerglings) > 14, "some are up"


def test_an_enemy_that_cannot_walk_fires_from_where_it_is(offline):
    begin(offline, "2s_vs_1sc")
    (crawler,) = team(offline, 2)
    near = team(offline, 1)[0]
    offline.create((MARINE, 1, crawler.pos.x + 3, crawler.pos.y))
    offline.step(40)
    (after,) = team(offline, 2)
    assert not offline.units(MARINE), "two hits of 25 kill it"
    assert (after.pos.x, after.pos.y) == (crawler.pos.x, crawler.pos.y)
    assert near.tag in {unit.tag for unit in team(offline, 1)}


def test_the_client_may_name_a_map_of_its_own(offline):
    """A real map of SMAC must give the same game as the bundled map file."""
    session_map = real_map()
    offline_scenario = read_scenario(session_map)
    ours = read_scenario((MAPS / "2m_vs_1z.SC2Map").read_bytes())
    assert differences(offline_scenario, ours) == []
    begin_on(offline, session_map)
    places = sorted((u.pos.x, u.pos.y) for u in team(offline, 1))
    assert np.abs(np.array(places) - [(13, 12), (19, 12)]).max() <= STRAY


SCRIPT = """
void gf_Spawn () {
    libNtve_gf_CreateUnitsWithDefaultFacing(1, "Marine_RL", 0, 1, PointFromId(1685340431));
    libNtve_gf_CreateUnitsWithDefaultFacing(1, "Marine_RL", 0, 1, PointFromId(960597521));
    libNtve_gf_CreateUnitsWithDefaultFacing(1, "Zealot", 0, 2, PointFromId(4294967295));
}
void gf_EnemyAttack () {
    UnitGroupIssueOrder(everyone, OrderTargetingPoint(AbilityCommand("attack", 0),
"""
BETWEEN = (
    "libNtve_gf_RandomPointBetweenPoints(PointFromId(1685340431), PointFromId(960597521))), "
    "c_orderQueueReplace);"
)
HUNT = 'OrderTargetingUnit(AbilityCommand("attack", 0), UnitGroupClosestToPoint'
PERIODIC = "TriggerAddEventTimePeriodic(gt_Hunt, {}, c_timeGame)"
OBJECTS = "".join(
    f'<ObjectPoint Id="{number}" Position="{x},{y},0" Type="Normal"/>\r\n'
    for number, x, y in ((1685340431, 13, 12), (960597521, 19, 12), (4294967295, 16, 19))
)


LAST = "PointFromId(4294967295)"


def real_map(**changes: bytes) -> bytes:
    """An archive with those files that the stand-in reads from a real map, by default 2m_vs_1z."""
    return pack(files_of(**changes))


def with_script(script: str) -> bytes:
    """The archive of `real_map` with another script."""
    return real_map(MapScript=script.encode())


def files_of(**changes: bytes) -> dict[str, bytes]:
    ground = read_scenario((MAPS / "2m_vs_1z.SC2Map").read_bytes()).ground
    assert ground is not None
    levels = np.where(ground.walkable, 64, 0).astype("<u2")
    flags = np.where(ground.walkable, 2, 3).astype("u1")
    files = {
        "MapScript.galaxy": (SCRIPT.rstrip() + " " + BETWEEN).encode(),
        "Objects": OBJECTS.encode(),
        "t3SyncCliffLevel": struct.pack("<4sIII16x", b"CLIF", 100, 32, 32) + levels.tobytes(),
        "t3CellFlags": struct.pack("<4sI16xII", b"LFCT", 102, 32, 32) + flags.tobytes(),
    }
    named = {name.partition(".")[0]: name for name in files}
    files |= {named[name]: content for name, content in changes.items()}
    return {name: content for name, content in files.items() if content}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"MPQ\x1a", "an MPQ archive that is cut off"),
        (real_map()[:-40], "cut off"),
        (real_map(Objects=b""), "the archive has no Objects"),
        (real_map(Objects=b"<x/>"), "the map has no point 1685340431"),
        (real_map(MapScript=b"void InitMap () {}"), "creates no units"),
        (with_script(SCRIPT.replace("Zealot", "Archon")), "no Archon"),
        (with_script(SCRIPT.replace("0, 2", "0, 3")), "third player"),
        (with_script(SCRIPT.replace("(1,", f"({'9' * 5000},")), "is not read"),
        (with_script(SCRIPT.replace("(1,", "(900,")), "creates more than 700 units"),
        (
            with_script(SCRIPT + 'UnitCreate(1, "Zealot", 0, 2, lv_p, 0.0);'),
            'in a way that is not read: UnitCreate(1, "Zealot"',
        ),
        (
            with_script(SCRIPT.replace(LAST, "RegionRandomPoint(lv_r)")),
            "at a place that it computes: RegionRandomPoint(lv_r)",
        ),
        (
            with_script(f"lv_p = {LAST};lv_p = lv_q;" + SCRIPT.replace(LAST, "lv_p")),
            "at a place that it computes: lv_p",
        ),
        (
            real_map(Objects=OBJECTS.replace("13,12", "1.2.3,12").encode()),
            "has no point 1685340431",
        ),
        (with_script(HUNT + PERIODIC.format("9" * 9)), "target every 999999999"),
        (with_script(HUNT + PERIODIC.format("9" * 400)), "creates no units"),
        (with_script(HUNT + PERIODIC.format("1.2.3")), "creates no units"),
        (real_map(t3CellFlags=b"LFCT"), "t3CellFlags is cut off"),
        (real_map(t3CellFlags=bytes(24) + struct.pack("<II", 32, 32)), "no grid of 32 x 32"),
        (real_map(t3SyncCliffLevel=bytes(8) + struct.pack("<II", 4000, 4000) + bytes(16)), "4000"),
        (real_map(t3CellFlags=bytes(24) + struct.pack("<II", 32, 32) + b"\3" * 1024), "can walk"),
    ],
)
def test_a_map_that_cannot_be_read_says_why(content, expected):
    with pytest.raises(ScenarioError, match=re.escape(expected)):
        read_scenario(content)


@pytest.mark.parametrize(
    "script",
    [
        f"lv_p = {LAST};\n" + SCRIPT.replace(LAST, "lv_p"),
        "".join(f"// {number}: a comment\n" for number in range(900)) + SCRIPT,
    ],
    ids=["a variable's place", "several sectors"],
)
def test_other_forms_of_a_script_are_read(script):
    files = files_of(MapScript=(script.rstrip() + " " + BETWEEN).encode())
    ours = read_scenario((MAPS / "2m_vs_1z.SC2Map").read_bytes())
    assert differences(read_scenario(in_sectors(files)), ours) == []


@pytest.mark.timing
def test_a_long_script_is_searched_in_linear_time():
    began_s = time.process_time()
    with pytest.raises(ScenarioError, match="creates no units"):
        read_scenario(real_map(MapScript=HUNT.encode() * 13_000))
    assert time.process_time() - began_s < 2.0
