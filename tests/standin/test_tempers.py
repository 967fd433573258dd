"""Tests which tempers (imitated faults) a game has, and the tempers that act when a game ends.

A game with a temper must show the temper's behaviour, and a game without tempers must not.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

import sc2standin
from sc2standin.command import main
from sc2standin.install import MARKER
from sc2standin.tempers import GROUPS, TEMPERS, Temper
from tests.standin.conftest import launcher
from tests.standin.sessions import Launch, Wire, command, results
from tests.support.duels import MOVE, Pair, local_map, units_of

README = Path(sc2standin.__file__).parent / "README.md"


def test_the_readme_has_the_same_tempers():
    lines = README.read_text().split("\n## Tempers\n")[1].split("\n## ")[0].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| `")]
    assert [(row[0], *row[-3:-1], row[-1] != "–") for row in rows] == [
        (
            f"`{one.name}[:{one.value}]`" if one.value else f"`{one.name}`",
            one.certainty,
            "yes" if one.hangs else "no",
            one.is_rarer,
        )
        for one in TEMPERS
    ]


def test_groups_follow_from_the_table():
    certain = {one.name: one.certainty for one in TEMPERS}
    assert GROUPS["kind"] == ()
    assert set(GROUPS["all"]) == set(certain)
    assert {certain[name] for name in GROUPS["recorded"]} == {"S", "1"}
    assert {certain[name] for name in GROUPS["default"]} <= {"S"}
    assert {"silent-end", "untold-end"} & set(GROUPS["default"]) == set(), "these hang a client"


def test_several_names_groups_and_values():
    assert repr(Temper("kind")) == "Temper()"
    assert repr(Temper("stub-end,untold-end:still,kind")) == "Temper(stub-end, untold-end:still)"
    assert repr(Temper("untold-end:still,untold-end")) == "Temper(untold-end)"
    assert "untold-end:still" in repr(Temper("untold-end:still,all"))


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("--temper=gentle", "no temper 'gentle'; there are silent-end, "),
        ("--temper=late-unit", "the groups kind, default, recorded, all; did you mean late-units?"),
        ("--temper=kind,", "no temper ''; there are silent-end, "),
        ("--temper=all:3", "no temper 'all:3'; there are silent-end, "),
        ("--temper=untold-end:soon", "no temper 'untold-end:soon'; write untold-end:still"),
        ("--temper=stub-end:1", "no temper 'stub-end:1'; write stub-end, without a value"),
        ("--after-stop=rewind", "rewind"),
    ],
)
@pytest.mark.parametrize("installs", [True, False])
def test_an_unknown_choice_is_an_error(option, told, installs, tmp_path, capsys):
    what = ["install", str(tmp_path / "game")] if installs else ["-port", "5000"]
    with pytest.raises(SystemExit) as refusal:
        main([*what, option])
    assert refusal.value.code == 2
    said = capsys.readouterr().err
    assert told in said
    if "there are" in told:
        assert ", ".join(GROUPS) in said
    assert not (tmp_path / "game" / MARKER).exists()


def test_the_start_script_has_the_choice(tempered, tmp_path):
    (executable,) = tempered("stub-end").glob("Versions/Base*/SC2_x64")
    with launcher(tempered("stub-end"), executable, tmp_path) as launch:
        wire = launch().connect()
        wire.start()
        wire.step(1920)
        assert not wire.observe().HasField("raw_data")


def test_without_a_choice_the_start_script_has_none(installation):
    (executable,) = installation.glob("Versions/Base*/SC2_x64")
    assert "--temper" not in executable.read_text()


SILENCE_S = 0.5
"""Eleven loops of real time, in seconds; a reply that waits for a loop comes within three loops."""
LAST_LOOP = 6
OBSERVE, PING = sc_pb.RequestObservation(), sc_pb.RequestPing()
LEAVE, ACT = sc_pb.RequestLeaveGame(), sc_pb.RequestAction()
WON = {1: sc_pb.Victory}
BOTH_WON, FIRST_WON = {1: sc_pb.Victory, 2: sc_pb.Victory}, {1: sc_pb.Victory, 2: sc_pb.Defeat}


def later_than(loop: int) -> sc_pb.RequestObservation:
    return sc_pb.RequestObservation(game_loop=loop + 1)


def is_silent(wire: Wire) -> bool:
    return not select.select([wire.socket], [], [], SILENCE_S)[0]


@pytest.fixture
def short(changed: Callable[..., bytes]) -> bytes:
    """A map whose game ends after a few loops."""
    return changed("mini_games/MoveToBeacon", time_limit_loops=LAST_LOOP)


@pytest.fixture
def begun(launch: Launch, short: bytes) -> Callable[..., Wire]:
    """`begun("stub-end")`: the client of a game that has this temper and has just begun."""

    def begin(temper: str, **create: Any) -> Wire:
        wire = launch("--temper", temper).connect()
        wire.start(short, **create)
        return wire

    return begin


@pytest.fixture
def pair_of(launch: Launch) -> Callable[..., Pair]:
    """`pair_of("both-win")`: the two clients of a game that has this temper and has just begun."""

    def begin(temper: str, **create: Any) -> Pair:
        pair = Pair(*(launch("--temper", temper).connect() for _ in range(2)))
        pair.begin(local_map(), disable_fog=True, **create)
        return pair

    return begin


def test_an_observation_after_the_end_of_a_kind_game(begun, wait_for):
    wire = begun("kind", realtime=True)
    told = wire.ask(observation=later_than(LAST_LOOP))
    assert (results(told.observation), told.status) == (WON, sc_pb.ended)
    assert wire.ask(observation=OBSERVE).observation.observation.game_loop == LAST_LOOP
    assert "already ended" in wire.ask(action=ACT).error[0]
    assert wire.ask(leave_game=LEAVE).status == sc_pb.launched


def test_silent_end(launch, short):
    game = launch("--temper", "silent-end")
    wire = game.connect()
    wire.start(short, realtime=True)
    assert wire.observed(game_loop=LAST_LOOP - 2).observation.raw_data.units
    wire.send(observation=later_than(LAST_LOOP))
    wire.send(ping=PING)
    assert is_silent(wire)
    wire.close()
    wire = game.connect()
    assert wire.ask(ping=PING).status == sc_pb.in_game
    told = wire.ask(observation=OBSERVE)
    assert (results(told.observation), told.status) == (WON, sc_pb.ended)
    wire.start(short, realtime=True)
    assert wire.observed(game_loop=2).observation.raw_data.units


@pytest.mark.parametrize("first", [{"observation": OBSERVE}, {"action": ACT}])
def test_not_in_game(begun, short, wait_for, first):
    wire = begun("not-in-game", realtime=True)
    wait_for(lambda: wire.ask(ping=PING).status == sc_pb.launched)
    for request in (first, {"observation": OBSERVE}, {"action": ACT}, {"leave_game": LEAVE}):
        refused = wire.ask(**request)
        assert (list(refused.error), refused.status) == (["Not in a game"], sc_pb.launched)
    wire.start(short)
    assert wire.step(LAST_LOOP).status == sc_pb.ended
    assert results(wire.observed()) == WON


@pytest.mark.parametrize("temper", ["silent-end", "not-in-game"])
def test_the_end_of_a_match_in_real_time(pair_of, temper, wait_for):
    pair = pair_of(temper, realtime=True)
    pair.wires[1].end_game("Surrender")
    if temper == "silent-end":
        for wire in pair.wires:
            wire.send(observation=later_than(1 << 10))
        assert all(is_silent(wire) for wire in pair.wires)
    else:
        wait_for(lambda: {reply.status for reply in pair.ask(ping=PING)} == {sc_pb.launched})
        assert [list(reply.error) for reply in pair.ask(observation=OBSERVE)] == [
            ["Not in a game"]
        ] * 2


@pytest.mark.parametrize("temper", ["untold-end", "untold-end:still"])
def test_untold_end(pair_of, temper, wait_for):
    pair = pair_of(temper, realtime=True)
    pair.wires[1].end_game("Surrender")
    wait_for(lambda: not any(units_of(seen, 2) for seen in pair.observe()))
    seen = pair.ask(observation=OBSERVE)
    move = command(units_of(seen[0].observation, 1), MOVE, (20, 20))
    for wire, one in zip(pair.wires, seen, strict=True):
        assert (one.status, results(one.observation)) == (sc_pb.in_game, {})
        assert units_of(one.observation, 1)
        assert wire.act(move, move) == [error_pb.YouCantControlThatUnit] * 2
    loop = max(one.observation.game_loop for one in pair.observe())
    for wire in pair.wires:
        wire.send(observation=later_than(loop))
    if temper == "untold-end:still":
        assert all(is_silent(wire) for wire in pair.wires)
        return
    assert all(wire.reply().observation.observation.game_loop > loop for wire in pair.wires)
    assert [reply.status for reply in pair.ask(leave_game=LEAVE)] == [sc_pb.launched] * 2
    pair.begin(local_map())
    pair.wires[1].end_game("Surrender")
    assert [reply.status for reply in pair.step(3)] == [sc_pb.ended] * 2
    assert [results(one) for one in pair.observe()] == [FIRST_WON] * 2


def test_untold_end_of_a_match_that_a_player_leaves(pair_of, wait_for):
    pair = pair_of("untold-end", realtime=True)
    assert pair.wires[1].ask(leave_game=LEAVE).status == sc_pb.launched
    stays = pair.wires[0]
    wait_for(lambda: not units_of(stays.observed(), 2))
    loop = stays.observe().game_loop
    seen = stays.ask(observation=later_than(loop))
    assert (seen.status, results(seen.observation)) == (sc_pb.in_game, {})
    assert seen.observation.observation.game_loop > loop


@pytest.mark.parametrize("temper", ["kind", "both-win"])
@pytest.mark.parametrize("realtime", [False, True])
def test_both_win(pair_of, temper, realtime, wait_for):
    pair = pair_of(temper, realtime=realtime)
    pair.wires[1].end_game("Surrender")
    if realtime:
        wait_for(lambda: {reply.status for reply in pair.ask(ping=PING)} == {sc_pb.ended})
    else:
        pair.step(3)
    expected = BOTH_WON if temper == "both-win" else FIRST_WON
    assert [results(seen) for seen in pair.observe()] == [expected] * 2


@pytest.mark.parametrize("temper", ["kind", "stub-end"])
@pytest.mark.parametrize("canned", [False, True])
def test_stub_end(launch, changed, temper, canned):
    wire = launch("--temper", temper).connect()
    played = "mini_games/Canned" if canned else "mini_games/MoveToBeacon"
    wire.start(changed(played, time_limit_loops=LAST_LOOP))
    assert wire.observe().raw_data.units
    assert wire.step(LAST_LOOP).status == sc_pb.ended
    end, later = wire.observed(), wire.observed()
    assert results(end) == WON
    assert later.observation.game_loop == LAST_LOOP
    assert later.observation.raw_data.units
    stub = sc_pb.Observation(game_loop=(1 << 32) - 1)
    assert end.observation == (stub if temper == "stub-end" else later.observation)


@pytest.mark.parametrize("temper", ["kind", "warnings"])
def test_warnings(launch, temper):
    wire = launch("--temper", temper).connect()
    wire.start()  # the game gives two good replies
    good, warned = 2, []
    for number in range(60):
        reply = wire.step(1) if number % 2 else wire.ask(observation=OBSERVE)
        good += 1
        assert reply.WhichOneof("response") == ("step" if number % 2 else "observation")
        if reply.error:
            warned.append(good)
        if number % 5 == 0:
            refused = wire.ask(join_game=sc_pb.RequestJoinGame(), id=number)
            assert (len(refused.error), refused.id) == (1, number)
    # A warning comes with each seventh reply or, if that is a refusal, with the next reply.
    gaps = [after - before for before, after in zip([0, *warned], warned, strict=False)]
    assert (len(warned) > 6 and set(gaps) <= {5, 6, 7}) if temper == "warnings" else not warned


def test_all_of_them_in_one_game(launch, short, wait_for):
    wire = launch("--temper", "all").connect()
    wire.start(short, realtime=True)
    wait_for(lambda: wire.ask(observation=OBSERVE).error == ["Not in a game"])
    assert wire.ask(ping=PING).status == sc_pb.launched
    wire.start(short)
    assert wire.step(LAST_LOOP).status == sc_pb.ended
    end = wire.observed()
    assert (results(end), end.observation.HasField("raw_data")) == (WON, False)
