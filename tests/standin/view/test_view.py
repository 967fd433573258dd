"""The observation that is kept and updated has the bytes of one that is filled again."""

from __future__ import annotations

import lzma

import numpy as np
import pytest
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.data.abilities import ABILITIES
from sc2standin.data.unit_types import UNIT_TYPES
from tests.standin.sessions import COLLECT

SCV, MARINE, MEDIVAC, OBSERVER, RAVEN, TURRET, AUTO_TURRET = 45, 48, 54, 82, 56, 31, 1764


def _disturb(session, rng: np.random.Generator) -> None:
    """Commands for some units, and a birth, a death or other values."""
    units = list(session.observe().raw_data.units)
    group = [unit for unit in units if unit.owner == 1 and rng.random() < 0.5]
    if group:
        ability = ABILITIES[rng.integers(len(ABILITIES))].id
        point = rng.uniform(20, 40, 2).tolist()
        session.order(group, ability, point, queued=bool(rng.integers(2)))
    match rng.integers(4):
        case 0:
            kind = UNIT_TYPES[rng.integers(len(UNIT_TYPES))].id
            session.create((kind, int(rng.choice([1, 2, 16])), *rng.uniform(20, 40, 2)))
        case 1:
            session.kill(units[rng.integers(len(units))])
        case 2:
            name = rng.choice(debug_pb.DebugSetUnitValue.UnitValue.keys())
            session.set_value(units[rng.integers(len(units))], name, rng.uniform(1, 50))


@pytest.mark.parametrize("fog", [False, True])
def test_a_kept_observation_has_the_bytes_of_a_new_one(offline, fog):
    rng = np.random.default_rng(1)
    everyone = [(kind.id, owner) for kind in UNIT_TYPES for owner in (1, 2)]
    places = ((*one, 10 + i % 40, 20 + 4 * (i // 40)) for i, one in enumerate(everyone))
    offline.arena(*places, rules=[COLLECT], fog=fog)
    sizes = set()
    for _ in range(60):
        _disturb(offline, rng)
        offline.step(int(rng.integers(1, 9)))
        if offline.state.status.name != "IN_GAME":
            break
        sizes.add(len(offline.look(disable_fog=bool(rng.integers(2)))))
    assert len(sizes) > 20


def _fields(unit) -> set[str]:
    return {field.name for field, _value in unit.ListFields()}


def test_a_units_fields_are_those_of_recorded_ones(offline, recorded_dir):
    """Of a Terran's first observation: an SCV walks and is armed, a mineral field is scenery."""
    path = next(recorded_dir.glob("*.observation.pb.xz"))
    recorded = sc_pb.ResponseObservation.FromString(lzma.decompress(path.read_bytes()))
    scv = next(unit for unit in recorded.observation.raw_data.units if unit.unit_type == SCV)
    offline.arena((48, 1, 20, 20), (110, 2, 24, 20), (1680, 16, 40, 40))
    marine, roach, shard = offline.observe().raw_data.units
    assert _fields(marine) == _fields(scv) - {"orders"}
    others = _fields(marine) - {"weapon_cooldown", "assigned_harvesters", "ideal_harvesters"}
    assert _fields(roach) == others | {"is_powered"}
    assert _fields(shard) < _fields(roach)
    assert marine.facing == pytest.approx(1.5 * np.pi)
    offline.step()
    (marine,) = offline.units(48)
    assert marine.engaged_target_tag == roach.tag
    offline.order(marine, 16, (10, 20))
    offline.step()
    assert not offline.units(48)[0].HasField("engaged_target_tag")


def test_a_units_range_of_detection_and_the_time_it_is_there(offline):
    """Only units that have them carry these fields; recorded ones of other types do not."""
    offline.arena((OBSERVER, 1, 20, 20), (MARINE, 1, 20, 24), (RAVEN, 1, 24, 24))
    offline.set_value(offline.one(RAVEN), "Energy", 200)
    offline.step()
    offline.order(offline.units(RAVEN), AUTO_TURRET, (25, 24))
    offline.step(9)
    observer, marine, turret = (offline.one(kind) for kind in (OBSERVER, MARINE, TURRET))
    assert (observer.detect_range, marine.HasField("detect_range")) == (11, False)
    assert turret.buff_duration_max == 224
    assert 214 <= turret.buff_duration_remain <= 224
    offline.step(10)
    later = offline.one(TURRET)
    assert later.buff_duration_remain == turret.buff_duration_remain - 10
    assert not marine.HasField("buff_duration_remain")


def test_healed_life_is_in_the_score(offline):
    offline.arena((MEDIVAC, 1, 20, 20), (MARINE, 1, 21, 20), (MEDIVAC, 2, 50, 50))
    offline.set_value(offline.one(MARINE), "Life", 20)
    offline.set_value(offline.units(MEDIVAC)[0], "Energy", 100)
    offline.step(100)
    assert offline.one(MARINE).health == 45
    assert offline.observe().score.score_details.total_healed.life == pytest.approx(25, abs=1)
