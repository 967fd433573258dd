"""A town as an image: who is drawn where, and how bright."""

from __future__ import annotations

import numpy as np
import pytest
from s2clientprotocol import raw_pb2

from sc2pool.tasks.minigames.towns.images import BuildMarinesImage, CollectMineralsAndGasImage
from sc2pool.tasks.minigames.towns.town import BARRACKS, COMMAND_CENTER, GEYSER, SCV
from sc2pool.units import Kind


def test_units_and_structures(unit, begin):
    task = begin(
        CollectMineralsAndGasImage,
        unit(Kind(COMMAND_CENTER, raw_pb2.Self), 22, 30, tag=1, build_progress=1),
        unit(Kind(SCV, raw_pb2.Self), 32, 30, tag=2, build_progress=1),
        unit(Kind(GEYSER, raw_pb2.Neutral), 22, 38, tag=3, build_progress=1),
    )
    seen = task.observation
    seen.player_common.minerals = 500
    task.observation = seen
    workers, structures, fields, gas, minerals, supply = task.observe()
    assert structures[32, 32] == 255
    assert (structures > 0).sum() == pytest.approx((5 * 64 / 24) ** 2, rel=0.2)
    rows, columns = np.nonzero(workers)
    assert columns.mean() > 50, "to the right"
    assert not fields.any()
    assert gas.max() == 127
    assert np.nonzero(gas)[0].mean() < 16, "above"
    assert (minerals == 128).all()
    assert not supply.any()
    assert rows.mean() == pytest.approx(31.5, abs=1)


def test_a_site_is_darker(unit, begin):
    task = begin(
        BuildMarinesImage,
        unit(Kind(BARRACKS, raw_pb2.Self), 22, 30, tag=1, build_progress=0.5),
    )
    image = task.observe()
    assert image[2].max() == 155
