"""Assertions about the data tables, the screen, the minimap and the reported actions."""

from __future__ import annotations

import numpy as np
import pytest
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import data_pb2 as data_pb
from s2clientprotocol import sc2api_pb2 as sc_pb
from s2clientprotocol import spatial_pb2 as spatial_pb

from sc2pool.units import unit_id
from tests.standin.assertions.conftest import of, put, units
from tests.standin.sessions import Wire, options

MINIMAP, SCREEN = 64, 84
ATTACKS, ATTACK_GENERAL, SCAN_MOVE, MOVE = (23, 3674), 3674, 19, 16
OWN = 1  # in `player_relative`
REMAPS = {  # names of our own, each with the specific id and the general id of an ability
    "stop": (4, 3665),
    "move": (16, 3794),
    "patrol": (17, 3795),
    "hold": (18, 3793),
    "scan move": (19, 3674),
    "attack": (23, 3674),
    "rally units": (195, 3673),
    "rally workers": (203, 3690),
    "gather": (295, 3666),
    "repair": (316, 3685),
    "stim": (380, 3675),
    "lift": (452, 3679),
    "land": (554, 3678),
    "cancel": (314, 3659),
    "cancel queued": (306, 3671),
    "halt": (348, 3660),
}
BLINK, BUILD_NEXUS, REPAIR, TECH_LAB = 1442, 880, 316, 421
EVERYTHING = sc_pb.RequestData(
    ability_id=True, unit_type_id=True, upgrade_id=True, buff_id=True, effect_id=True
)


class TestData:
    """Each test reads the reply to a request for all data tables."""

    @pytest.fixture
    def data(self, begin) -> sc_pb.ResponseData:
        return begin().ask(data=EVERYTHING).data

    def test_p15_specific_abilities_remap_to_general_ones(self, data):
        remaps = {one.ability_id: one.remaps_to_ability_id for one in data.abilities}
        assert {name: remaps[specific] for name, (specific, _) in REMAPS.items()} == {
            name: general for name, (_, general) in REMAPS.items()
        }
        assert not any(remaps[general] for _, general in REMAPS.values())

    def test_s02_s03_s04_s05_abilities(self, data):
        by_id = {one.ability_id: one for one in data.abilities}
        blink = by_id[BLINK]
        assert "Blink" in blink.link_name
        assert (blink.hotkey, blink.target) == ("B", data_pb.AbilityData.Point)
        assert not blink.is_building
        assert not blink.allow_autocast
        assert by_id[BUILD_NEXUS].is_building
        assert by_id[BUILD_NEXUS].footprint_radius == 2.5
        assert by_id[REPAIR].allow_autocast
        assert by_id[TECH_LAB].is_instant_placement

    def test_s07_a_buff_is_found_by_its_id(self, data):
        assert {one.buff_id: one.name for one in data.buffs}[27] == "Stimpack"

    def test_s09_s10_units(self, data):
        stalker = data.units[unit_id("Stalker")]
        assert (stalker.name, stalker.cargo_size, stalker.available) == ("Stalker", 2, True)
        assert (stalker.mineral_cost, stalker.vespene_cost) == (125, 50)
        assert len(stalker.weapons) >= 1
        assert not data.units[unit_id("OverlordTransport")].weapons


@pytest.fixture
def on_screen(begin) -> Wire:
    """A game with feature layers, after its automatic first selection and camera move."""
    wire = begin(interface=options())
    wire.step(3)
    wire.observe()
    return wire


def _layer(image: common.ImageData) -> np.ndarray:
    """The pixels of a feature layer, as an array with the indices [y, x]."""
    size = image.size
    if image.bits_per_pixel == 1:
        bits = np.unpackbits(np.frombuffer(image.data, np.uint8))
        return bits[: size.x * size.y].reshape(size.y, size.x)
    assert image.bits_per_pixel == 8
    return np.frombuffer(image.data, np.uint8).reshape(size.y, size.x)


def _act(wire, **part) -> None:
    action = sc_pb.Action(action_feature_layer=spatial_pb.ActionSpatial(**part))
    assert wire.act(action) == [1]


def _point(x: int, y: int, kind: str = "Select") -> spatial_pb.ActionSpatialUnitSelectionPoint:
    selection = spatial_pb.ActionSpatialUnitSelectionPoint
    return selection(
        selection_screen_coord=common.PointI(x=x, y=y), type=selection.Type.Value(kind)
    )


def _reported(wire) -> list[spatial_pb.ActionSpatial]:
    """The actions on screen and minimap that the next observation reports."""
    return [one.action_feature_layer for one in wire.observed().actions]


def test_s14_a_click_is_reported_with_its_pixel(on_screen):
    rng = np.random.default_rng(1)
    for _ in range(50):
        x, y = (int(number) for number in rng.integers(0, SCREEN, 2))
        click = _point(x, y)
        _act(on_screen, unit_selection_point=click)
        on_screen.step()
        (done,) = _reported(on_screen)
        assert done.unit_selection_point == click


def test_s42_a_marine_is_on_the_minimap(begin):
    wire = begin(interface=options())
    wire.step()

    def own_pixels() -> int:
        layers = wire.observe().feature_layer_data.minimap_renders
        return int((_layer(layers.player_relative) == OWN).sum())

    before = own_pixels()
    put(wire, ("Marine", 1, 44, 48), loops=5)
    assert own_pixels() > before


def test_s43_the_camera_moves_to_a_pixel_of_the_minimap(on_screen):
    wire = on_screen
    camera = _layer(wire.observe().feature_layer_data.minimap_renders.camera)
    height, width = (int(np.ptp(axis)) for axis in np.nonzero(camera))
    for x, y in ((32, 32), (30, 28), (34, 36)):
        center = common.PointI(x=x, y=y)
        _act(wire, camera_move=spatial_pb.ActionSpatialCameraMove(center_minimap=center))
        wire.step(5)
        (done,) = _reported(wire)
        assert done.camera_move.center_minimap == center
        ys, xs = np.nonzero(_layer(wire.observe().feature_layer_data.minimap_renders.camera))
        assert xs.min() <= x <= xs.max()
        assert ys.min() <= y <= ys.max()
        assert abs(int(np.ptp(ys)) - height) <= 1
        assert abs(int(np.ptp(xs)) - width) <= 1
        assert abs((xs.min() + xs.max()) / 2 - x) <= 1.0


def test_s44_actions_are_reported_one_loop_later_with_their_arguments(on_screen):
    wire = on_screen
    rectangle = spatial_pb.ActionSpatialUnitSelectionRect(
        selection_screen_coord=[
            common.RectangleI(p0=common.PointI(x=0, y=0), p1=common.PointI(x=83, y=83))
        ]
    )
    move = spatial_pb.ActionSpatialCameraMove(center_minimap=common.PointI(x=20, y=20))
    command = spatial_pb.ActionSpatialUnitCommand(
        ability_id=MOVE, target_screen_coord=common.PointI(x=40, y=40)
    )
    # The command comes before the camera move, while the selected workers are on the screen.
    for part in (
        {"unit_selection_rect": rectangle},
        {"unit_command": command},
        {"unit_selection_point": _point(42, 42, "Toggle")},
        {"camera_move": move},
    ):
        _act(wire, **part)
        assert _reported(wire) == []
        wire.step()
        (done,) = _reported(wire)
        assert done == spatial_pb.ActionSpatial(**part)


def test_p20_a_camera_is_moved_within_three_loops(begin_duel, pair):
    wire, _ = begin_duel(interface=options())
    pair.step(1)
    before = wire.observe().raw_data.player.camera
    center = common.PointI(x=32, y=32)
    _act(wire, camera_move=spatial_pb.ActionSpatialCameraMove(center_minimap=center))
    pair.step(3)
    after = wire.observe().raw_data.player.camera
    assert (after.x, after.y) != (before.x, before.y)


def test_s45_both_minimaps_of_a_game_of_two_clients_change(begin_duel, pair):
    clients = begin_duel(interface=options())
    pair.step(1)

    def shown() -> list[common.ImageData]:
        return [
            client.observe().feature_layer_data.minimap_renders.player_relative
            for client in clients
        ]

    before = shown()
    assert [(one.size.x, one.size.y) for one in before] == [(MINIMAP, MINIMAP)] * 2
    for player, client in enumerate(clients, 1):
        client.spawn(*units(("Marine", player, 44, 40 + 4 * player)))
    pair.step(5)
    for one, other in zip(before, shown(), strict=True):
        assert one.data != other.data


def test_s47_a_rendered_image_has_24_bits_a_pixel_and_several_colours(begin):
    interface = sc_pb.InterfaceOptions(raw=True)
    interface.render.resolution.x, interface.render.resolution.y = 128, 96
    interface.render.minimap_resolution.x = interface.render.minimap_resolution.y = 64
    wire = begin(interface=interface)
    wire.step(2)
    seen = wire.observe().render_data
    for image, (width, height) in ((seen.map, (128, 96)), (seen.minimap, (64, 64))):
        assert (image.size.x, image.size.y, image.bits_per_pixel) == (width, height, 24)
        assert len(image.data) == 3 * width * height
        pixels = np.frombuffer(image.data, np.uint8).reshape(-1, 3)
        assert len(np.unique(pixels, axis=0)) > 1


class TestReportedAttacks:
    """P16 to P18: a zealot and an observer attack a point, and the game reports the order."""

    TARGET = (48.0, 50.0)

    @pytest.fixture
    def attackers(self, on_screen) -> Wire:
        put(on_screen, ("Zealot", 1, 44, 44), ("Observer", 1, 44, 48))
        on_screen.observe()
        return on_screen

    def reported(self, wire: Wire, *names: str) -> int:
        """Order an attack; returns the ability of the only raw command that is then reported."""
        attackers = [unit for name in names for unit in of(wire, name)]
        wire.order(attackers, ATTACK_GENERAL, self.TARGET)
        wire.step()
        done = [one.action_raw.unit_command for one in wire.observed().actions]
        (ability,) = (one.ability_id for one in done if one.ability_id)
        return int(ability)

    def test_p16_both_arrive_exactly_and_one_attack_is_reported(self, attackers):
        assert self.reported(attackers, "Zealot", "Observer") in ATTACKS
        attackers.step(63)
        for name in ("Zealot", "Observer"):
            (unit,) = of(attackers, name)
            assert (unit.pos.x, unit.pos.y) == pytest.approx(self.TARGET, abs=1e-7)

    def test_p17_a_zealot_reports_an_attack(self, attackers):
        assert self.reported(attackers, "Zealot") in ATTACKS

    def test_p18_an_observer_reports_a_scan_move(self, attackers):
        assert self.reported(attackers, "Observer") == SCAN_MOVE
