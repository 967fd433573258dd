"""The scenarios are those of the registry and of the stand-in's maps."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import sc2standin
from sc2pool.tasks.registry import SMAC, resolve
from sc2pool.tasks.teams.smac.scenarios import SCENARIOS
from sc2standin.map_reader.real_map import read_scenario

MAPS = Path(sc2standin.__file__).parent / "maps" / "smac"


def test_every_scenario_has_a_name_in_the_registry():
    assert set(SMAC) == set(SCENARIOS) == {path.stem for path in MAPS.iterdir()}
    assert resolve("3m").scenario is SCENARIOS["3m"]


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_maps_have_its_units(name):
    scenario = SCENARIOS[name]
    counts = Counter()
    ids = {}
    for group in read_scenario((MAPS / f"{name}.SC2Map").read_bytes()).units:
        kind = re.sub("_(RL|Liberty)$", "", group.type.name).lower()
        counts[group.owner, kind] += group.count
        if group.owner == 1:
            ids[kind] = group.type.id
    expected = {
        (owner, kind.name.replace("_", "")): count
        for owner, groups in ((1, scenario.allies), (2, scenario.enemies))
        for kind, count in groups
    }
    assert counts == expected
    own = [ids[kind.name] for kind, _ in scenario.allies]
    assert own == list(range(own[0], own[0] + len(own)))


def test_agents_are_named_by_type():
    agents = SCENARIOS["2s3z"].agents
    assert agents == ("stalker_0", "stalker_1", "zealot_0", "zealot_1", "zealot_2")
