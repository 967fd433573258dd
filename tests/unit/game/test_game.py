"""Tests episodes of a game: restarts, events, ends, and the failures of a match."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest
from s2clientprotocol import common_pb2, error_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import Computer, GameSetup
from sc2pool.errors import FaultKind, GameFault
from sc2pool.game import match
from sc2pool.game.episode import Beginning, EndSigns, ResetLadder, shown_again
from sc2pool.game.program.builds import Settled
from sc2pool.protocol.observed import Observed, PendingEvents, events_of

# ---- restarts ------------------------------------------------------------------------------------


ALONE = (GameSetup("BuildMarines"), Path("/maps/BuildMarines.SC2Map"))
AREA = common_pb2.RectangleI(p0=common_pb2.PointI(x=1, y=0), p1=common_pb2.PointI(x=3, y=2))


def first(
    *, minerals: int = 1800, marines: int = 1, enemies: int = 1, fog: bool = True, score: int = 0
) -> sc_pb.Observation:
    """The first observation of an episode."""
    seen = sc_pb.Observation()
    seen.score.score = score
    raw = seen.raw_data
    raw.units.add(unit_type=341, owner=16, alliance=raw_pb2.Neutral, mineral_contents=minerals)
    for _ in range(marines):
        raw.units.add(unit_type=48, owner=1, alliance=raw_pb2.Self)
    for _ in range(enemies):
        raw.units.add(unit_type=105, owner=2, alliance=raw_pb2.Enemy)
    visibility = raw.map_state.visibility
    visibility.size.x, visibility.size.y, visibility.bits_per_pixel = 4, 2, 8
    visibility.data = bytes([0, 2, 1 if fog else 2, 0] * 2)
    return seen


def beginning(**what: object) -> Beginning:
    return Beginning.of(first(**what))  # type: ignore[arg-type]


@pytest.fixture
def ladder() -> ResetLadder:
    ladder = ResetLadder(Settled())
    ladder.created(ALONE, None)
    assert not ladder.difference(beginning(), AREA, restarted=False)
    return ladder


class TestWhatIsRestarted:
    def test_not_one_of_two_players_nor_one_that_ended_without_a_word(self, ladder):
        ladder.not_again()
        assert not ladder.may_restart(ALONE, None)

    @pytest.mark.parametrize(
        "setup",
        [
            GameSetup("Simple64", opponents=(Computer(),)),
            GameSetup("Simple64", race=common_pb2.Random),
        ],
        ids=["computer", "random race"],
    )
    @pytest.mark.parametrize("settled", [None, False, True])
    def test_games_with_chance_only_if_doctor_has_shown_it(self, setup, settled):
        ladder = ResetLadder(Settled(restart_with_computer=settled))
        ladder.created((setup, ALONE[1]), None)
        assert ladder.may_restart((setup, ALONE[1]), None) == (settled is True)

    def test_none_if_doctor_has_shown_that_restarts_leave_something_out(self):
        ladder = ResetLadder(Settled(restart_faithful=False))
        ladder.created(ALONE, None)
        assert not ladder.may_restart(ALONE, None)

    def test_none_if_the_task_says_so(self):
        never = (GameSetup("BuildMarines", restart="never"), ALONE[1])
        ladder = ResetLadder(Settled())
        ladder.created(never, None)
        assert not ladder.may_restart(never, None)


class TestWhatARestartBringsBack:
    @pytest.mark.parametrize(
        ("otherwise", "words"),
        [
            ({"minerals": 1795}, "minerals: 1795 in place of 1800"),
            ({"marines": 0}, "1 units of type 48 of player 1 are missing"),
            ({"marines": 3}, "2 more units of type 48 of player 1 are there"),
            ({"score": 5}, "score: 5 in place of 0"),
        ],
    )
    def test_a_difference_ends_restarts_on_this_map_alone(self, ladder, otherwise, words):
        assert ladder.difference(beginning(**otherwise), AREA, restarted=True) == words
        assert not ladder.may_restart(ALONE, None)
        elsewhere = (GameSetup("MoveToBeacon"), Path("/maps/MoveToBeacon.SC2Map"))
        ladder.created(elsewhere, None)
        assert ladder.may_restart(elsewhere, None)
        ladder.created(ALONE, None)
        assert not ladder.may_restart(ALONE, None)

    def test_upgrades(self, ladder):
        upgraded = first()
        upgraded.raw_data.player.upgrade_ids.append(15)
        found = ladder.difference(Beginning.of(upgraded), AREA, restarted=True)
        assert found == "other upgrades: [15]"

    def test_another_game_begins_otherwise_for_good_reason(self, ladder):
        ladder.created(ALONE, None)
        assert not ladder.difference(beginning(minerals=5), AREA, restarted=False)
        assert ladder.may_restart(ALONE, None)

    def test_enemies_in_the_fog_are_not_counted(self, ladder):
        assert not ladder.difference(beginning(enemies=3), AREA, restarted=True)

    @pytest.mark.parametrize("area", [AREA, None], ids=["known", "unknown"])
    def test_enemies_on_a_map_that_is_seen_as_a_whole_are(self, area):
        seen = [beginning(enemies=n, fog=False) for n in (1, 3)]
        assert bool(seen[0].difference(seen[1], area)) == (area is not None)


# ---- events --------------------------------------------------------------------------------------


def seen(
    loop: int,
    *,
    dead: tuple[int, ...] = (),
    alert: int | None = None,
    error: int | None = None,
    said: str = "",
    result: int | None = None,
) -> Observed:
    """An observation of this loop with one unit of this tag, and these events."""
    response = sc_pb.ResponseObservation()
    state = response.observation
    state.game_loop = loop
    state.score.score = loop
    state.raw_data.units.add(tag=loop, unit_type=48, alliance=raw_pb2.Self)
    state.raw_data.event.dead_units.extend(dead)
    if alert is not None:
        state.alerts.append(alert)
    if error is not None:
        response.action_errors.add(unit_tag=loop, result=error)
        response.actions.add(game_loop=loop)
    if said:
        response.chat.add(player_id=1, message=said)
    if result is not None:
        response.player_result.add(player_id=1, result=result)
    return Observed.of(response)


def test_they_are_told_once_the_earlier_first():
    events = PendingEvents()
    events.keep(seen(1, dead=(7,), alert=sc_pb.UnitUnderAttack, said="a"))
    events.keep(seen(2, dead=(8, 9), error=error_pb2.NotEnoughMinerals))
    told = events.deliver(seen(3, dead=(10,), alert=sc_pb.NuclearLaunchDetected, said="b")).response
    assert list(told.observation.raw_data.event.dead_units) == [7, 8, 9, 10]
    assert list(told.observation.alerts) == [sc_pb.UnitUnderAttack, sc_pb.NuclearLaunchDetected]
    assert [line.message for line in told.chat] == ["a", "b"]
    assert [error.unit_tag for error in told.action_errors] == [2]
    assert [action.game_loop for action in told.actions] == [2]
    again = seen(4, dead=(11,))
    assert events.deliver(again) is again


def test_of_the_state_nothing_is_kept():
    events = PendingEvents()
    events.keep(seen(1, dead=(7,)))
    told = events.deliver(seen(3))
    assert (told.game_loop, told.score) == (3, 3)
    assert list(told.columns.tag) == [3]
    assert [unit.tag for unit in told.observation.raw_data.units] == [3]


def test_a_result_is_told_once():
    events = PendingEvents()
    events.keep(seen(1, result=sc_pb.Victory))
    told = events.deliver(seen(1, dead=(7,))).response
    assert [result.result for result in told.player_result] == [sc_pb.Victory]
    events.keep(seen(1, result=sc_pb.Undecided))
    told = events.deliver(seen(1, result=sc_pb.Victory)).response
    assert [result.result for result in told.player_result] == [sc_pb.Victory], "the newest"


def test_observation_without_events_is_not_copied():
    assert events_of(seen(1).response) is None
    events = PendingEvents()
    events.keep(seen(1))
    observed = seen(2)
    assert events.deliver(observed) is observed


def test_another_episode_is_not_told():
    events = PendingEvents()
    events.keep(seen(1, dead=(7,)))
    events.clear()
    observed = seen(2)
    assert events.deliver(observed) is observed


# ---- the end in real time ------------------------------------------------------------------------


SUCCESS = int(error_pb2.Success)
NOT_OURS = int(error_pb2.YouCantControlThatUnit)


def observed(loop: int, own_units: int = 1) -> Observed:
    response = sc_pb.ResponseObservation()
    response.observation.game_loop = loop
    units = response.observation.raw_data.units
    for alliance in [raw_pb2.Enemy, *[raw_pb2.Self] * own_units]:
        units.add(alliance=alliance, tag=len(units) + 1, unit_type=48).pos.SetInParent()
    return Observed.of(response)


@pytest.fixture
def signs() -> EndSigns:
    signs = EndSigns()
    signs.begin(has_opponent=True)
    return signs


def looked(signs: EndSigns, *loops_and_times: tuple[int, float], **options: float) -> list[str]:
    return [signs.look(observed(loop), at_s, **options) for loop, at_s in loops_and_times]


class TestStandstill:
    def test_a_loop_that_stands_for_a_second(self, signs):
        found = looked(signs, *((8, 0.05 * look) for look in range(22)))
        assert found[-1] == "the game loop stood still"
        assert not any(found[:20])

    def test_a_loop_that_moves_in_between(self, signs):
        assert not any(looked(signs, *((8 + look // 15, 0.05 * look) for look in range(60))))

    def test_time_between_two_looks_counts_little(self, signs):
        """A long gap proves nothing: the game or this process may have been stopped."""
        assert not any(looked(signs, (8, 0.0), (8, 30.0), (8, 60.0)))

    def test_a_pause_does_not_count(self, signs):
        looked(signs, *((8, 0.05 * look) for look in range(19)))
        signs.resume()
        assert not any(looked(signs, *((8, 9.0 + 0.05 * look) for look in range(19))))

    def test_the_other_game_must_answer_meanwhile(self, signs):
        stands = [(8, 0.05 * look) for look in range(40)]
        assert not any(looked(signs, *stands, others_answered_s=0.3))
        assert signs.look(observed(8), 2.0, others_answered_s=1.9)


class TestUnits:
    def test_no_own_unit_for_a_second_of_loops(self, signs):
        assert not signs.look(observed(10), 0.0)
        found = [signs.look(observed(loop, own_units=0), loop / 22.4) for loop in (20, 30, 41, 42)]
        assert found == ["", "", "", "no own unit was left"]

    def test_units_that_come_back(self, signs):
        signs.look(observed(10), 0.0)
        signs.look(observed(20, own_units=0), 1.0)
        assert not signs.look(observed(40), 2.0)
        assert not signs.look(observed(50, own_units=0), 3.0)

    def test_units_that_were_never_there(self, signs):
        found = [signs.look(observed(loop, own_units=0), loop / 22.4) for loop in range(0, 300, 10)]
        assert not any(found)

    def test_without_an_opponent_nobody_has_lost(self):
        signs = EndSigns()
        signs.begin(has_opponent=False)
        signs.look(observed(10), 0.0)
        found = [signs.look(observed(loop, own_units=0), loop / 22.4) for loop in range(20, 99, 8)]
        assert not any(found)


class TestCommands:
    def test_units_that_do_not_obey_any_more(self, signs):
        signs.note_results([SUCCESS, NOT_OURS], 10)
        signs.note_results([NOT_OURS], 20)
        signs.note_results([], 28)
        signs.note_results([NOT_OURS, NOT_OURS], 36)
        assert looked(signs, (41, 2.0), (42, 2.1)) == [
            "",
            "the own units could not be commanded any more",
        ]

    def test_units_that_have_never_obeyed_are_the_tasks_mistake(self, signs):
        signs.note_results([NOT_OURS], 10)
        assert not any(looked(signs, (50, 2.0)))

    def test_one_that_obeys_again(self, signs):
        signs.note_results([SUCCESS], 2)
        signs.note_results([NOT_OURS], 10)
        signs.note_results([SUCCESS], 20)
        assert not any(looked(signs, (50, 2.0)))


class TestShownAgain:
    @pytest.fixture
    def last(self) -> Observed:
        response = observed(96).response
        response.action_errors.add(unit_tag=1)
        response.chat.add(message="gg")
        response.actions.add()
        response.observation.alerts.append(sc_pb.MergeComplete)
        response.observation.raw_data.event.dead_units.append(77)
        response.observation.score.score = 12
        return Observed.of(response)

    def test_the_state_without_its_events(self, last):
        again = shown_again(last)
        assert (again.game_loop, again.score) == (96, 12)
        assert list(again.columns.tag) == list(last.columns.tag)
        told = again.response
        assert not (told.action_errors or told.chat or told.actions)
        assert not told.observation.alerts
        assert not told.observation.raw_data.event.dead_units

    def test_with_the_events_of_a_later_stub(self, last):
        stub = sc_pb.ResponseObservation()
        stub.observation.game_loop = 2**32 - 1
        stub.player_result.add(player_id=1, result=sc_pb.Victory)
        stub.action_errors.add(unit_tag=5)
        again = shown_again(last, stub)
        assert again.game_loop == 96
        assert [error.unit_tag for error in again.response.action_errors] == [5]
        assert [result.result for result in again.response.player_result] == [sc_pb.Victory]


# ---- matches -------------------------------------------------------------------------------------


async def fail() -> None:
    await asyncio.sleep(0)
    raise GameFault(FaultKind.GAME_EXITED, "killed")


async def test_failures_of_both_sides_are_not_printed_if_the_wait_for_them_is_cancelled():
    printed: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: printed.append(told))
    sides = [asyncio.ensure_future(fail()) for _ in range(2)]
    waiting = asyncio.ensure_future(match._failures(sides))
    while not all(side.done() for side in sides):
        await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    del sides
    gc.collect()
    assert printed == []
