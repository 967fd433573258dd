"""Tests that observations, which are decoded in parts, have the values that protobuf reads."""

from __future__ import annotations

import functools
import math
from collections import defaultdict

import numpy as np
import pytest
from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.errors import FaultKind, GameFault
from sc2pool.protocol import compiled, replies
from sc2pool.protocol.observed import Head, Observed, RawColumns, RawUnits
from sc2pool.units import Kind, health, select, shield, weapon_cooldown, with_tags
from tests.unit.conftest import needs_compiled

# ---- hand-built observations ---------------------------------------------------------------------


def response(*units: raw_pb2.Unit) -> sc_pb.ResponseObservation:
    answer = sc_pb.ResponseObservation()
    answer.observation.game_loop = 77
    answer.observation.player_common.player_id = 1
    answer.observation.score.score = -5
    answer.observation.score.score_details.killed_minerals.army = 3.0
    answer.observation.raw_data.player.camera.x = 1.0
    answer.observation.raw_data.units.extend(units)
    answer.observation.raw_data.map_state.visibility.data = bytes(1000)
    answer.player_result.add(player_id=1, result=sc_pb.Victory)
    answer.chat.add(player_id=1, message="gg")
    return answer


def unit(number: int) -> raw_pb2.Unit:
    made = raw_pb2.Unit(tag=1 << 32 | number, unit_type=40 + 3 * number, alliance=1 + number % 4)
    made.pos.x, made.pos.y, made.pos.z = 0.5 * number, 100.0 - number, 9.0
    made.orders.add(ability_id=number)
    if number % 2:
        made.health = 45.0
        made.buff_ids.extend([1, number])
    return made


def assert_equal(observed: Observed, answer: sc_pb.ResponseObservation) -> None:
    units = answer.observation.raw_data.units
    assert observed.game_loop == answer.observation.game_loop
    assert observed.score == answer.observation.score.score
    assert list(observed.columns.tag) == [unit.tag for unit in units]
    assert list(observed.columns.unit_type) == [unit.unit_type for unit in units]
    assert list(observed.columns.alliance) == [unit.alliance for unit in units]
    assert list(observed.columns.x) == [unit.pos.x for unit in units]
    assert list(observed.columns.y) == [unit.pos.y for unit in units]
    assert observed.messages(range(len(units))) == list(units)
    assert observed.response == answer
    assert observed.observation == answer.observation


@pytest.mark.parametrize("n_units", [0, 1, 2, 300])
def test_parts_and_whole(n_units):
    answer = response(*[unit(number) for number in range(n_units)])
    assert_equal(Observed.of(answer), answer)


@pytest.mark.parametrize("field", ["tag", "unit_type", "alliance", "pos"])
def test_units_that_lack_a_field_keep_their_rows(field):
    units = [unit(number) for number in range(5)]
    units[2].ClearField(field)
    answer = response(*units)
    assert_equal(Observed.of(answer), answer)


def test_a_head_is_judged_like_a_response():
    reply = sc_pb.Response(id=4, status=sc_pb.in_game, observation=response(unit(1)))
    head = Head.FromString(reply.SerializeToString())
    assert (head.id, head.status, list(head.error)) == (4, sc_pb.in_game, [])
    replies.check(head, 4, "observation")
    replies.require(head, "observation")
    replies.check_observation(head.observation, first_loop=77, last_loop=77)
    assert replies.result_of(head.observation, 1) == sc_pb.Victory
    with pytest.raises(GameFault, match="id 4, expected 5"):
        replies.check(head, 5, "observation")


@pytest.mark.parametrize("missing", ["raw_data", "player_common"])
def test_a_head_shows_what_is_missing(missing):
    answer = response()
    answer.observation.ClearField(missing)
    reply = sc_pb.Response(id=4, status=sc_pb.in_game, observation=answer)
    head = Head.FromString(reply.SerializeToString())
    with pytest.raises(GameFault):
        replies.check_observation(head.observation, first_loop=77, last_loop=77)


def test_other_replies_have_heads_too():
    refusal = sc_pb.Response(id=1, status=sc_pb.ended, error=["Game has already ended"])
    assert replies.is_game_over(Head.FromString(refusal.SerializeToString()))
    step = sc_pb.Response(id=1, status=sc_pb.in_game, step=sc_pb.ResponseStep())
    assert Head.FromString(step.SerializeToString()).WhichOneof("response") == "step"


def test_raw_data_that_cannot_be_decoded_is_the_games_fault():
    reply = Head()
    reply.observation.observation.raw_data = b"\xff" * 20
    observed = Observed(reply.SerializeToString(), reply)
    for part in ("columns", "response"):
        with pytest.raises(GameFault) as raised:
            getattr(observed, part)
        assert raised.value.kind is FaultKind.BAD_REPLY
    with pytest.raises(GameFault):
        observed.messages([0])


def set_number(message: object, path: str, number: float) -> None:
    *parts, name = path.split(".")
    setattr(functools.reduce(getattr, parts, message), name, number)


NOT_FINITE = [math.nan, math.inf, -math.inf]
OF_UNITS = ("pos.x", "pos.y", "pos.z", "health", "shield", "energy", "weapon_cooldown")


@pytest.mark.parametrize("number", NOT_FINITE)
@pytest.mark.parametrize("name", OF_UNITS)
def test_numbers_of_a_unit_are_finite(name, number):
    answer = response(*[unit(number) for number in range(5)])
    set_number(answer.observation.raw_data.units[2], name, number)
    message = f"the {name} of a unit is {number}, expected a finite number"
    with pytest.raises(GameFault, match=message) as raised:
        _ = Observed.of(answer).observation
    assert raised.value.kind is FaultKind.BAD_REPLY
    with pytest.raises(GameFault, match=message):
        Observed.of(answer).messages([1, 2])
    if name in ("pos.x", "pos.y"):
        with pytest.raises(GameFault, match=message):
            _ = Observed.of(answer).columns


def test_numbers_that_cancel_out_are_found():
    answer = response(unit(1), unit(2))
    answer.observation.raw_data.units[0].pos.x = math.inf
    answer.observation.raw_data.units[1].pos.x = -math.inf
    for part in ("columns", "response"):
        with pytest.raises(GameFault, match=r"the pos\.x of a unit is inf"):
            getattr(Observed.of(answer), part)


@pytest.mark.parametrize("number", NOT_FINITE)
@pytest.mark.parametrize("name", ["collected_minerals", "current_apm", "killed_minerals.army"])
def test_the_details_of_the_score_are_finite(name, number):
    answer = response(unit(1))
    set_number(answer.observation.score.score_details, name, number)
    with pytest.raises(GameFault, match=f"the {name} of the score is {number}"):
        _ = Observed.of(answer).response


def test_large_numbers_are_finite():
    """Numbers must be accepted if they are the largest, or if their bytes look in part like NaN."""
    answer = response(unit(1), unit(2))
    largest = float(np.finfo(np.float32).max)
    for each in answer.observation.raw_data.units:
        for name in OF_UNITS:
            set_number(each, name, largest)
    details = answer.observation.score.score_details
    for name, number in zip(("spent_minerals", "spent_vespene"), (largest, -largest), strict=True):
        set_number(details, name, number)
    details.collected_minerals = float(np.frombuffer(b"\x80\x7f\x00\x3f", np.float32)[0])
    assert Observed.of(answer).response == answer


# ---- recorded observations of the real game ------------------------------------------------------


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


@reads
def test_every_part(recorded_observations, read):
    """Every part is read; the last decoded part has grids, layers, panels, scores and actions."""
    for seen in recorded_observations:
        assert len(seen.observation.raw_data.units) > 100
        assert_equal(read(seen), seen)


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
    """A sparse column has one entry for each unit with the field, in the order of the units."""
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
