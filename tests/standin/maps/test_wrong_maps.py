"""What is said of a map file that is wrong: where it is, and what was expected."""

from __future__ import annotations

import json
import re

import pytest

from sc2standin.map_reader.fields import Fields, ScenarioError
from sc2standin.map_reader.real_map import read_scenario
from tests.peers.run_smac import MAPS
from tests.standin.sessions import EMPTY_MAP, create_request

DUEL = {"format": EMPTY_MAP["format"], "name": "3m_duel", "duel_of": "3m"}
UNIT = {"type": "Kerrigan", "owner": 1, "count": 1, "place": "side"}


def _read(content: dict[str, object]) -> None:
    read_scenario(json.dumps(content).encode())


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"format": "other/1"}, "map.format"),
        ({"size": [9, 9]}, "map.size"),
        ({"fog": 1}, "map.fog"),
        ({"playable_area": [[0, 0], [99, 99]]}, "map.playable_area"),
        ({"time_limit_loops": 0}, "map.time_limit_loops"),
        ({"units": [UNIT]}, "Kerrigan"),
        ({"rules": [{"kind": "bounty", "type": "Roach", "owner": 2}]}, "rules[0].score"),
        ({"rules": [{"kind": "dance"}]}, "dance"),
        ({"colour": "red"}, "colour"),
        ({"canned": 1}, "map.canned must be bool"),
        ({"canned": True, "fog": True}, "map.canned"),
        ({"canned": True, "stamp": True}, "map.canned"),
        ({"step_cost": {"burn_ms": -1}}, "map.step_cost.burn_ms must be 0 to 1000"),
        ({"step_cost": {"sleep_ms": 1000.5}}, "map.step_cost.sleep_ms must be 0 to 1000"),
        ({"step_cost": {"burn_ms": float("nan")}}, "map.step_cost.burn_ms"),
        ({"step_cost": {"burn_ms": True}}, "map.step_cost.burn_ms must be float"),
        ({"step_cost": {"sleep_ms": "5"}}, "map.step_cost.sleep_ms must be float"),
        ({"step_cost": {"nap_ms": 5}}, "map.step_cost has unknown keys: nap_ms"),
        ({"step_cost": 5}, "map.step_cost must be an object"),
        ({"step_cost": None}, "map.step_cost must be an object"),
    ],
)
def test_a_map(change, complaint):
    with pytest.raises(ScenarioError, match=re.escape(complaint)):
        _read(EMPTY_MAP | change)


GROUP = {"type": "Marine", "owner": 1, "count": 700, "place": "side"}
TARGETS = {"kind": "collect", "target": "MineralShard", "count": 1, "place": "random", "reach": 1}
TARGETS |= {"score": 1, "minerals": 0, "taken": "vanishes"}


@pytest.mark.parametrize(
    "change",
    [
        {"units": [GROUP, GROUP | {"count": 1}]},
        {"units": [GROUP], "rules": [TARGETS]},
        {
            "units": [GROUP],
            "rules": [{"kind": "waves", "units": [GROUP | {"count": 1}], "survivors": "stay"}],
        },
    ],
    ids=["groups", "targets", "waves"],
)
def test_a_map_of_too_many_units(change):
    _read(EMPTY_MAP | {"units": [GROUP]})
    with pytest.raises(ScenarioError, match="must place at most 700 units in all"):
        _read(EMPTY_MAP | change)


def test_a_map_of_too_many_bytes(offline):
    large = json.dumps(EMPTY_MAP | {"rules": [{"kind": "income", "score": 1}] * 50_000}).encode()
    reply = offline.ask(create_game=create_request(large))
    assert "over 1 MiB" in reply.create_game.error_details


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"ground": ["22"]}, "32 rows of 32 characters"),
        ({"ground": ["#" * 32] * 32}, "no place for units"),
        ({"ground": ["?" * 32] * 32}, "must be made of"),
        ({"rules": [{"kind": "battle", "attack": "everyone"}]}, "attack must be one of units"),
        ({"rules": [{"kind": "battle"}]}, "attack is missing"),
        ({"rules": [{"kind": "battle", "attack": [[1, 2, 3]]}]}, "pairs"),
    ],
)
def test_a_map_of_smacs(change, complaint):
    with pytest.raises(ScenarioError, match=complaint):
        _read(json.loads((MAPS / "3m.SC2Map").read_text()) | change)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"duel_of": "4m"}, r"map\.duel_of must be one of .*3m.*, not '4m'"),
        ({"duel_of": "../MarineDuel"}, r"map\.duel_of must be one of"),
        ({"duel_of": 3}, r"map\.duel_of must be str, not 3"),
        ({"size": [32, 32]}, "map has unknown keys: size"),
        ({"name": None}, r"map\.name must be str"),
    ],
)
def test_a_duel_of_another_map(change, complaint):
    with pytest.raises(ScenarioError, match=complaint):
        _read(DUEL | change)


@pytest.mark.parametrize("number", [10**400, -(10**400), float("nan"), "7", True])
def test_a_number_out_of_range(number):
    with pytest.raises(ScenarioError, match=r"map\.side must be"):
        Fields("map", {"side": number}).number("side", 5.0)
