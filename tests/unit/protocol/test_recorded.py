"""Recorded observations of the real game: every reader says what protobuf says, field by field."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.protocol import compiled, replies
from sc2pool.protocol.observed import Observed
from sc2pool.protocol.sparse import Head, RawColumns, RawUnits
from sc2pool.units import Kind, health, select, shield, weapon_cooldown, with_tags
from tests.unit.conftest import needs_compiled

REQUEST_ID = 77
NUMBERS = {"health": health, "shield": shield, "weapon_cooldown": weapon_cooldown}


def payload_of(seen: sc_pb.ResponseObservation) -> bytes:
    reply = sc_pb.Response(id=REQUEST_ID, status=sc_pb.in_game, observation=seen)
    return bytes(reply.SerializeToString())


def read_pure(seen: sc_pb.ResponseObservation) -> Observed:
    payload = payload_of(seen)
    return Observed(payload, Head.FromString(payload))


def read_compiled(seen: sc_pb.ResponseObservation) -> Observed:
    payload = payload_of(seen)
    plain = compiled.fast.observation(payload, REQUEST_ID)
    assert plain is not None, "the compiled path leaves this observation to pure Python"
    return Observed(payload, plain)


READERS = [read_pure, pytest.param(read_compiled, marks=needs_compiled)]
reads = pytest.mark.parametrize("read", READERS)


def values_of(unit: raw_pb2.Unit) -> dict[str, Any]:
    """Every field of a unit: its value, and whether the message carries it."""
    found: dict[str, Any] = {}
    for field in unit.DESCRIPTOR.fields:
        value = getattr(unit, field.name)
        found[field.name] = list(value) if field.is_repeated else (value, unit.HasField(field.name))
    return found


@reads
def test_every_field_of_every_unit(recorded_observations, read):
    for seen in recorded_observations:
        units = seen.observation.raw_data.units
        read_units = read(seen).messages(range(len(units)))
        assert len(read_units) == len(units) > 100
        for ours, theirs in zip(read_units, units, strict=True):
            assert values_of(ours) == values_of(theirs)


@reads
def test_columns_and_totals(recorded_observations, read):
    for seen in recorded_observations:
        observed, units = read(seen), seen.observation.raw_data.units
        columns = observed.columns
        for name in ("tag", "unit_type", "alliance"):
            assert list(getattr(columns, name)) == [getattr(unit, name) for unit in units]
        for axis in ("x", "y"):
            assert list(getattr(columns, axis)) == [getattr(unit.pos, axis) for unit in units]
        assert observed.game_loop == seen.observation.game_loop
        assert observed.score == seen.observation.score.score


@reads
def test_the_whole_message(recorded_observations, read):
    """Grids, layers, panels, scores and actions are in the part that is decoded last."""
    for seen in recorded_observations:
        assert read(seen).response == seen


@reads
def test_select_finds_the_units_of_every_kind(recorded_observations, read):
    for seen in recorded_observations:
        of_kind: dict[Kind, list[raw_pb2.Unit]] = defaultdict(list)
        for unit in seen.observation.raw_data.units:
            of_kind[Kind(unit.unit_type, unit.alliance)].append(unit)
        observed = read(seen)
        for source in (observed, seen.observation):
            for units, there in zip(select(source, *of_kind), of_kind.values(), strict=True):
                expected = sorted(there, key=lambda unit: unit.tag)
                assert units.tags == [unit.tag for unit in expected]
                assert units.messages == expected
                assert units.positions.tolist() == [[one.pos.x, one.pos.y] for one in expected]
                for name, read_number in NUMBERS.items():
                    numbers = [getattr(unit, name) for unit in expected]
                    assert read_number(units).tolist() == numbers
        wanted = [unit.tag for unit in seen.observation.raw_data.units][::-7]
        there, units = with_tags(observed, [*wanted, 1])
        assert there.tolist() == [True] * len(wanted) + [False]
        assert [unit.tag for unit in units.messages] == units.tags == wanted


def test_columns_of_fields_that_not_every_unit_carries(recorded_observations):
    """A sparse column has one entry for each unit that carries the field, in their order."""
    for seen in recorded_observations:
        raw = seen.observation.raw_data
        columns = RawColumns.FromString(raw.SerializeToString()).units
        for name in ("health", "shield", "energy", "weapon_cooldown"):
            carried = [getattr(unit, name) for unit in raw.units if unit.HasField(name)]
            assert 0 < len(carried) < len(raw.units)
            assert list(getattr(columns, name)) == carried
        assert list(columns.pos.z) == [unit.pos.z for unit in raw.units]
        each = RawUnits.FromString(raw.SerializeToString()).units
        assert [raw_pb2.Unit.FromString(one) for one in each] == list(raw.units)


def test_the_checks_of_a_step_accept_them(recorded_observations):
    for seen in recorded_observations:
        head = Head.FromString(payload_of(seen))
        replies.check(head, REQUEST_ID, "observation")
        loop = seen.observation.game_loop
        replies.check_observation(head.observation, first_loop=loop, last_loop=loop)
