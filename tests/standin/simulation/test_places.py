"""What blocks a place for a structure: what its player knows of, and what does not step aside."""

from __future__ import annotations

import pytest
from s2clientprotocol import error_pb2 as error_pb

BUILD_CENTER = 318
CENTER, DEPOT, LOWERED, SIEGED, FLYING_BARRACKS = 18, 19, 47, 32, 46
OVERLORD, OBSERVER, ZEALOT, TEMPLAR, CHANGELING = 106, 82, 73, 76, 12
BURROWED_ROACH, BURROWED_ZERGLING, BURROWED_MINE = 118, 119, 500
MIDDLE = 44.5, 48.5


def _can_place(session) -> list[int]:
    session.step(2)
    session.observe()
    return session.can_place(BUILD_CENTER, MIDDLE)


@pytest.mark.parametrize(
    ("own", "enemy"),
    [
        (OVERLORD, TEMPLAR),
        (OVERLORD, BURROWED_ROACH),
        (FLYING_BARRACKS, BURROWED_MINE),
        (OVERLORD, BURROWED_ZERGLING),
        (ZEALOT, None),
        (None, ZEALOT),
        (None, DEPOT),
        (None, TEMPLAR),
        (None, BURROWED_ROACH),
    ],
)
def test_undetected_units_do_not_block(field, own, enemy):
    field.create(*((kind, owner, *MIDDLE) for owner, kind in ((1, own), (2, enemy)) if kind))
    assert _can_place(field) == [error_pb.Success]


@pytest.mark.parametrize(
    ("own", "enemy"),
    [
        (CENTER, None),
        (SIEGED, None),
        (OVERLORD, DEPOT),
        (OVERLORD, LOWERED),
        (OVERLORD, ZEALOT),
        (OVERLORD, SIEGED),
        (OVERLORD, CHANGELING),
        (OBSERVER, TEMPLAR),
        (OBSERVER, BURROWED_ROACH),
        (OBSERVER, BURROWED_MINE),
    ],
)
def test_seen_units_that_do_not_step_aside_block(field, own, enemy):
    field.create(*((kind, owner, *MIDDLE) for owner, kind in ((1, own), (2, enemy)) if kind))
    assert _can_place(field) == [error_pb.CantBuildLocationInvalid]


def test_without_fog_only_what_is_detected_blocks(melee):
    session = melee(None, disable_fog=True)
    session.create((TEMPLAR, 2, *MIDDLE))
    assert _can_place(session) == [error_pb.Success]
    session.create((OBSERVER, 1, *MIDDLE))
    assert _can_place(session) == [error_pb.CantBuildLocationInvalid]
