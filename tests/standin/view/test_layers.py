"""Tests the feature layers of screen and minimap: the things they show, at the right pixels."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.layers import window
from sc2standin.layers.layers import MINIMAP, SCREEN, Discs
from sc2standin.layers.window import Window
from tests.standin.sessions import look, options

MARINE, ROACH, COMMAND_CENTER, MINERALS = 48, 110, 18, 341
SENTRY, PHOENIX, PYLON, TUMOR, HALLUCINATE_PHOENIX = 77, 78, 60, 87, 154
TYPES = {1: np.uint8, 8: np.uint8, 24: np.uint8, 32: np.int32}


def image(plane: common.ImageData) -> np.ndarray:
    """The pixels of a layer or an image, as an array with the axes (y, x) or (y, x, colour)."""
    pixels = np.frombuffer(plane.data, dtype=TYPES[plane.bits_per_pixel])
    count = plane.size.x * plane.size.y
    if plane.bits_per_pixel == 1:
        assert len(pixels) == (count + 7) // 8
        pixels = np.unpackbits(pixels)[:count]
    return pixels.reshape(plane.size.y, plane.size.x, *([3] if plane.bits_per_pixel == 24 else []))


def screen(seen: sc_pb.Observation) -> SimpleNamespace:
    renders = seen.feature_layer_data.renders
    return SimpleNamespace(**{name: image(getattr(renders, name)) for name in SCREEN})


def minimap(seen: sc_pb.Observation) -> SimpleNamespace:
    renders = seen.feature_layer_data.minimap_renders
    return SimpleNamespace(**{name: image(getattr(renders, name)) for name in MINIMAP})


def test_game_info_lists_the_layers_that_are_sent(offline):
    wanted = options(crop_to_playable_area=True, allow_cheating_layers=True)
    offline.start(interface=wanted)
    assert offline.game_info().options == wanted
    seen = offline.observe()
    renders = seen.feature_layer_data.renders
    assert {field.name for field, _value in renders.ListFields()} == set(SCREEN)
    assert seen.HasField("ui_data")


def test_a_client_that_asks_for_no_layers_gets_none(offline):
    offline.start()
    seen = offline.observe()
    assert not seen.HasField("feature_layer_data") and not seen.HasField("ui_data")


@pytest.mark.parametrize("side", [0, 100_000])
def test_images_that_cannot_be_made_are_not_listed(offline, side):
    wanted = options()
    wanted.feature_layer.resolution.x = side
    offline.start(interface=wanted)
    assert not offline.game_info().options.HasField("feature_layer")
    assert not offline.observe().HasField("feature_layer_data")


def test_a_unit_is_where_the_camera_shows_it(arena):
    seen = screen(arena((MARINE, 1, 32.0, 32.0), (ROACH, 2, 36.0, 42.0)).observe())
    assert seen.unit_type[42, 42] == MARINE and seen.player_relative[42, 42] == 1
    assert seen.unit_hit_points[42, 42] == 45 and seen.unit_hit_points_ratio[42, 42] == 255
    row, column = 42 - 10 * 84 // 24, 42 + 4 * 84 // 24  # rows count downwards, but y grows upwards
    assert seen.unit_type[row, column] == ROACH and seen.player_relative[row, column] == 4
    assert seen.player_id[row, column] == 2
    assert set(np.unique(seen.unit_type)) == {0, MARINE, ROACH}
    rows, columns = np.nonzero(seen.unit_type == MARINE)
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (41, 43, 41, 43)


def test_the_screen_follows_the_camera(arena):
    session = arena((MARINE, 1, 32.0, 32.0))
    session.act(look((35.0, 32.0)))
    before = session.observe()
    session.step()
    after = session.observe()
    assert screen(before).unit_type[42, 42] == MARINE, "an action takes effect with the next loop"
    assert screen(after).unit_type[42, 42 - 3 * 84 // 24] == MARINE
    assert (after.raw_data.player.camera.x, after.raw_data.player.camera.y) == (35.0, 32.0)
    shown = minimap(after).camera
    rows, columns = shown.nonzero()
    assert (columns.min(), columns.max() + 1) == (35 - 12, 35 + 12)
    assert (rows.min(), rows.max() + 1) == (32 - 12, 32 + 12)


def test_units_say_whether_they_are_on_the_screen(arena):
    session = arena((MARINE, 1, 32.0, 32.0), (MARINE, 1, 44.3, 32.0), (MARINE, 1, 50.0, 32.0))
    assert [unit.is_on_screen for unit in session.units(MARINE)] == [True, True, False]


def test_the_minimap_shows_the_whole_map_or_the_playable_area(arena):
    unit = (MARINE, 1, 20.5, 50.5)
    whole = minimap(arena(unit).observe())
    assert whole.player_id[63 - 50, 20] == 1 and whole.pathable[:8].sum() == 0
    area = minimap(arena(unit, interface=options(crop_to_playable_area=True)).observe())
    column, row = int((20.5 - 8) / 48 * 64), int((56 - 50.5) / 48 * 64)
    assert area.player_id[row, column] == 1 and area.pathable.all()
    assert not area.unit_type.any()
    cheat = options(allow_cheating_layers=True)
    assert minimap(arena(unit, interface=cheat).observe()).unit_type[13, 20] == MARINE


def test_fog_hides_units_and_cells(arena):
    session = arena((MARINE, 1, 20.0, 20.0), (ROACH, 2, 40.0, 40.0), fog=True, camera=(40.0, 40.0))
    hidden = screen(session.observe())
    assert not hidden.unit_type.any() and not hidden.visibility_map.any()
    session.act(look((20.0, 20.0)))
    session.step()
    seen = screen(session.observe())
    assert seen.visibility_map[42, 42] == 2 and seen.visibility_map[0, 0] == 0
    everything = session.observed(disable_fog=True).observation
    assert (minimap(everything).player_id == 2).any()


def test_creep_and_power_are_where_they_lie(arena):
    session = arena((TUMOR, 1, 28.0, 32.0), (PYLON, 1, 38.0, 32.0), (MARINE, 1, 50.0, 50.0))
    session.step(400)
    seen = session.observe()
    shown, state = screen(seen), seen.raw_data.map_state.creep
    assert shown.creep[42, 42 - 14] and not shown.creep[0].any()
    lit = np.unpackbits(np.frombuffer(state.data, np.uint8)).reshape(64, 64)[::-1]
    assert (minimap(seen).creep == lit).all() and lit.any()
    assert shown.power.sum() == pytest.approx(np.pi * (6.5 * 3.5) ** 2, rel=0.05)
    assert shown.power[42, 42 + 21] and not shown.power[42, 42 - 21]
    session.kill(session.units(TUMOR) + session.units(PYLON))
    session.step(600)
    shown = screen(session.observe())
    assert not shown.creep.any() and not shown.power.any()


def test_own_hallucinations_and_shares_of_energy_are_shown(arena):
    session = arena((SENTRY, 1, 32.0, 32.0))
    session.set_value(session.one(SENTRY), "Energy", 175)
    session.step()
    shown = screen(session.observe())
    assert shown.unit_energy_ratio[42, 42] == 255 * 7 // 8
    assert not shown.hallucinations.any()
    assert session.order(session.units(SENTRY), HALLUCINATE_PHOENIX) == 1
    session.step(4)
    (phoenix,), shown = session.units(PHOENIX), screen(session.observe())
    assert shown.hallucinations.sum() == (shown.unit_type == PHOENIX).sum() > 0
    assert phoenix.is_hallucination


def test_a_structure_under_construction_shows_its_progress(offline):
    offline.start("BuildMarines", interface=options())
    seen = screen(offline.observe())
    assert COMMAND_CENTER in seen.unit_type and MINERALS in seen.unit_type
    assert not seen.build_progress.any() and not seen.active.any()


def test_sizes_need_not_be_square(arena):
    wanted = options()
    wanted.feature_layer.resolution.y = 87
    wanted.feature_layer.minimap_resolution.y = 67
    seen = arena((MARINE, 1, 32.0, 32.0), interface=wanted).observe()
    layers = screen(seen)
    assert layers.unit_type.shape == (87, 84) and minimap(seen).pathable.shape == (67, 64)
    assert layers.unit_type[43, 42] == MARINE, "pixels are square"


def test_rendered_images_show_ground_and_units(arena):
    wanted = sc_pb.InterfaceOptions()
    wanted.render.resolution.x, wanted.render.resolution.y = 128, 96
    wanted.render.minimap_resolution.x = wanted.render.minimap_resolution.y = 64
    session = arena((MARINE, 1, 32.0, 32.0), interface=wanted)
    assert session.game_info().options == wanted
    rendered = session.observe().render_data
    picture = image(rendered.map)
    assert picture.shape == (96, 128, 3) and image(rendered.minimap).shape == (64, 64, 3)
    assert tuple(picture[48, 64]) != tuple(picture[10, 10]) != (0, 0, 0)


def test_a_disc_has_the_pixels_of_recorded_ones():
    """The recorded observation shows 24 cells on 128 pixels, and a disc of radius 5.875 cells."""
    seen = Window(left=0.0, top=24.0, pixel=24 / 128, width=128, height=128)
    middle = np.array([124.17, 70.83]) * 24 / 128
    discs = Discs(seen, middle[:1], 24 - middle[1:], np.array([5.875]))
    index, density = discs.index()
    halves = [124 - int(np.flatnonzero(row)[0]) for row in index if row.any()]
    assert halves[:8] == [5, 9, 12, 14, 16, 17, 19, 20] and len(halves) == 63
    assert (index == density).all()
    smooth = discs.smooth_density()
    assert smooth.max() == 16 and smooth[70, 124] == 16
    assert set(np.unique(smooth)) >= {1, 8, 15}


def test_units_that_overlap_are_counted():
    x = np.array([5.0, 5.2, 9.0])
    seen = Window(left=0.0, top=10.0, pixel=0.25, width=40, height=40)
    index, density = Discs(seen, x, x, np.array([1.0, 0.5, 0.1])).index()
    assert density.max() == 2 and set(np.unique(index)) == {0, 1, 2, 3}
    assert index[20, 20] == 2, "the smaller unit is on top"


def test_a_pixel_that_is_clicked_is_the_place_that_it_shows():
    setup = options().feature_layer
    seen = window.screen(setup, (33.0, 25.0))
    for pixel in ((0, 0), (83, 0), (41, 60)):
        assert seen.pixel_at(*seen.point(*pixel)) == pixel
    assert (seen.left, seen.top, seen.right, seen.bottom) == (21.0, 37.0, 45.0, 13.0)


def test_a_canned_map_has_layers_too(offline):
    offline.start("Canned", interface=options())
    before = offline.observe()
    offline.step(8)
    after = offline.observe()
    assert (minimap(after).player_id == 1).any() and after.game_loop == 8
    assert after.feature_layer_data == before.feature_layer_data


def test_a_kept_view_has_the_bytes_of_a_new_one(offline):
    offline.start("FindAndDefeatZerglings", interface=options())
    for camera in ((20.0, 20.0), (32.0, 28.0), (32.0, 28.0), (44.0, 40.0)):
        offline.act(look(camera))
        offline.step(20)
        offline.look()
