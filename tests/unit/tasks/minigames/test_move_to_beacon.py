"""What MoveToBeacon shows and does, as a vector and as an image."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from stable_baselines3.common.preprocessing import is_image_space, is_image_space_channels_first

from sc2pool import commands
from sc2pool.tasks.minigames.geometry import N_DIRECTIONS, nearest_direction
from sc2pool.tasks.minigames.move_to_beacon import (
    BEACONS,
    IMAGE_SIZE,
    OWN_MARINES,
    MoveToBeacon,
    MoveToBeaconImage,
    beacon_vector,
)
from sc2pool.tasks.minigames.scripted import move_to_beacon


def test_vector(unit, begin):
    task = begin(MoveToBeacon, unit(OWN_MARINES, 22, 30), unit(BEACONS, 28, 38))
    assert task.observe() == pytest.approx([0.6, 0.8, 10 / 24, 0, 0])


def test_vector_without_marine_or_beacon(unit, begin):
    assert begin(MoveToBeacon, unit(BEACONS, 28, 38)).observe().tolist() == [0] * 5
    lonely = begin(MoveToBeacon, unit(OWN_MARINES, 34, 30)).observe()
    assert lonely.tolist() == [0, 0, 0, 1, 0]


def test_vector_on_the_beacon(area):
    here = np.array([[12.0, 21.0]])
    assert beacon_vector(here, here, area)[:3].tolist() == [0, 0, 0]


@pytest.mark.parametrize("action", range(N_DIRECTIONS))
def test_action_walks_in_its_direction(action, unit, begin):
    task = begin(MoveToBeacon, unit(OWN_MARINES, 22, 30, tag=77))
    task.observe()
    (order,) = task.act(np.int64(action))
    target = order.target_world_space_pos
    assert order.ability_id == commands.MOVE
    assert list(order.unit_tags) == [77]
    assert not order.queue_command
    assert nearest_direction(target.x - 22, target.y - 30) == action


def test_script_walks_towards_the_beacon(unit, begin):
    task = begin(MoveToBeacon, unit(OWN_MARINES, 30, 30), unit(BEACONS, 20, 39))
    assert move_to_beacon(task.observe()) == 3


def test_image_shows_the_beacon_from_the_marine(unit, begin):
    # The area is 24 wide and the image 48, so a pixel is 3/4 of a cell.
    task = begin(MoveToBeaconImage, unit(OWN_MARINES, 30, 22), unit(BEACONS, 15, 37))
    rows, columns = np.nonzero(task.observe()[0])
    assert columns.mean() == pytest.approx(31.5 - 15 / 0.75, abs=0.3)
    assert rows.mean() == pytest.approx(31.5 - 15 / 0.75, abs=0.3)
    assert len(rows) == pytest.approx(np.pi * (2.5 / 0.75) ** 2, rel=0.1)


def test_image_shows_the_whole_area_from_its_corner(unit, begin, area):
    task = begin(MoveToBeaconImage, unit(OWN_MARINES, area.left, area.bottom))
    plane = task.observe()[1]
    rows, columns = np.nonzero(plane)
    assert columns.min() == rows.max() + 1 == IMAGE_SIZE // 2
    assert columns.max() == IMAGE_SIZE - 1
    assert len(rows) == pytest.approx(24 * 20 / 0.75**2, rel=0.05)


def test_image_without_a_marine_is_black(unit, begin):
    assert not begin(MoveToBeaconImage, unit(BEACONS, 20, 30)).observe().any()


def test_a_beacon_is_always_visible(unit, begin, area):
    huge = replace(area, right=area.left + 250, top=area.bottom + 250)
    corners = [huge.left, huge.bottom], [huge.right, huge.top]
    for x, y in np.random.default_rng(3).uniform(*corners, (50, 2)).tolist():
        units = unit(OWN_MARINES, *corners[0], tag=1), unit(BEACONS, x, y, tag=2)
        assert begin(MoveToBeaconImage, *units, within=huge).observe()[0].any()


def test_image_fits_convolutional_policies():
    space = MoveToBeaconImage.observation_space
    assert is_image_space(space)
    assert is_image_space_channels_first(space)
    assert min(space.shape[1:]) >= 36, "NatureCNN takes nothing smaller"


def test_image_and_vector_take_the_same_actions():
    assert MoveToBeaconImage.action_space == MoveToBeacon.action_space
    assert MoveToBeaconImage.act is MoveToBeacon.act
