"""A match is two games that play each other; faults name the side, and close leaves nothing."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from s2clientprotocol import common_pb2, debug_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import GameSetup, Limits
from sc2pool.deadline import Deadline
from sc2pool.errors import FaultKind, GameFault
from sc2pool.game.game import Game, ResetKind
from sc2pool.game.hang_detection import MatchSide
from sc2pool.game.match import Match
from sc2pool.game.program import lease as lease_module
from sc2pool.game.program.installation import find_installation, find_map
from sc2pool.protocol.observed import Observed
from sc2pool.protocol.replies import Status
from tests.support.systems import strike

pytestmark = pytest.mark.standin("StarCraft II has no map MarineDuel")

SETUP = GameSetup("MarineDuel", participants=2)
LIMITS = Limits(launch_s=30, create_join_s=30, reset_s=30, step_s=20)
SHORT = Limits(launch_s=30, create_join_s=2.0, reset_s=2.0, step_s=1.0)


@asynccontextmanager
async def matching(
    where: Path, limits: Limits = LIMITS, *, setup: GameSetup = SETUP, seed: int | None = None
) -> AsyncIterator[Match]:
    """Launches a match, begins an episode if a seed is given, and closes the match afterwards."""
    installation = find_installation(where)
    launching = Match.launch(
        installation, limits, players=2, deadline=Deadline.after(limits.launch_s)
    )
    with closing(await launching) as match:
        if seed is not None:
            path = find_map(installation, setup.map_name)
            assert await match.start_episode(setup, path, seed) is ResetKind.CREATE
            await match.observe()
        yield match


@pytest.fixture
def played(standin_dir: Path) -> Path:
    """The file of the map that is played."""
    return find_map(find_installation(standin_dir), SETUP.map_name)


@pytest.fixture
def leases(tmp_path, monkeypatch) -> Iterator[None]:
    """Fails a test that leaves a port leased, apart from ports that other programs lease."""
    folder = tmp_path / "leases"
    folder.mkdir()
    monkeypatch.setattr(lease_module, "lease_directory", lambda: folder)
    yield
    assert list(folder.iterdir()) == []


def game_of(match: Match, side: MatchSide) -> Game:
    return match.games[list(MatchSide).index(side)]


def attack(observed: Observed, x: float, y: float) -> list[sc_pb.Action]:
    own = [u.tag for u in observed.observation.raw_data.units if u.alliance == raw_pb2.Self]
    command = raw_pb2.ActionRawUnitCommand(
        ability_id=3674, unit_tags=own, target_world_space_pos=common_pb2.Point2D(x=x, y=y)
    )
    return [sc_pb.Action(action_raw=raw_pb2.ActionRaw(unit_command=command))]


def seen_by(observed: Observed, owner: int) -> dict[int, tuple[float, float, float]]:
    units = observed.observation.raw_data.units
    return {u.tag: (u.pos.x, u.pos.y, u.health) for u in units if u.owner == owner}


async def test_four_hundred_steps(standin_dir, played):
    """Both sides must be at equal loops; one side's own units must be the other's enemies."""
    async with matching(standin_dir) as match:
        assert match.host.version == match.guest.version != ""
        assert match.host.port != match.guest.port
        steps = episode = 0
        while steps < 400:
            setup = replace(SETUP, disable_fog=True)
            await match.start_episode(setup, played, episode)
            seen = await match.observe()
            assert {game.player_id for game in match.games} == {1, 2}
            assert [one.game_loop for one in seen] == [0, 0]
            ended = False
            while not ended:
                wander = [(steps * 7 + side * 11) % 20 + 6 for side in range(2)]
                step = await match.step(
                    [attack(seen[0], 16, wander[0]), attack(seen[1], 16, wander[1])], 8
                )
                steps += 1
                ended = step.ended
                seen = step.sides[0].observed, step.sides[1].observed
                assert seen[0].game_loop == seen[1].game_loop
                for owner in (1, 2):
                    assert seen_by(seen[0], owner) == seen_by(seen[1], owner)
            assert all(game.status is Status.ENDED for game in match.games)
            results = {match.host.result, match.guest.result}
            assert results in ({sc_pb.Victory, sc_pb.Defeat}, {sc_pb.Tie})
            episode += 1


@pytest.mark.usefixtures("leases")
async def test_one_side_attacks_and_both_know_the_result(standin_dir):
    async with matching(standin_dir, seed=1) as match:
        seen = await match.observe()
        for unit in seen_by(seen[1], 2):
            kill = debug_pb2.DebugCommand(kill_unit=debug_pb2.DebugKillUnit(tag=[unit]))
            await match.host.request(sc_pb.Request(debug=sc_pb.RequestDebug(debug=[kill])))
        step = await match.step([[], []], 8)
        assert step.ended
        assert match.host.result == sc_pb.Victory
        assert match.guest.result == sc_pb.Defeat


@pytest.mark.parametrize(
    ("told", "settled", "contradiction"),
    [
        ((None, sc_pb.Victory), (sc_pb.Defeat, sc_pb.Victory), ""),
        ((sc_pb.Tie, None), (sc_pb.Tie, sc_pb.Tie), ""),
        ((sc_pb.Victory,) * 2, (sc_pb.Undecided,) * 2, "Victory and Victory"),
    ],
)
def test_what_the_sides_tell_of_the_result(told, settled, contradiction):
    match = Match([Mock(), Mock()], Mock())
    match.host.result, match.guest.result = told
    for _ in range(2):
        match._settle()
        assert (match.host.result, match.guest.result) == settled
        assert match.contradiction == contradiction


async def test_a_map_outside_of_the_map_folder(standin_dir, tmp_path, played):
    elsewhere = tmp_path / "Elsewhere.SC2Map"
    elsewhere.write_bytes(played.read_bytes())
    async with matching(standin_dir) as match:
        for seed in (1, 2):
            await match.start_episode(SETUP, elsewhere, seed)
            seen = await match.observe()
            assert len(seen_by(seen[0], 1)) == 5


async def test_a_map_that_is_deleted_once_it_was_sent_is_sent_again(
    standin_dir, tmp_path, monkeypatch, played
):
    elsewhere = tmp_path / "Deleted.SC2Map"
    elsewhere.write_bytes(played.read_bytes())
    async with matching(standin_dir) as match:
        create, deleted = match.host.create, []

        async def create_without_it(*given: Any) -> None:
            if not deleted:
                deleted.extend(Path(tempfile.gettempdir()).rglob(elsewhere.name))
                for path in deleted:
                    path.unlink()
            await create(*given)

        monkeypatch.setattr(match.host, "create", create_without_it)
        await match.start_episode(SETUP, elsewhere, 1)
        assert len(deleted) == 2
        assert len(seen_by((await match.observe())[0], 1)) == 5


async def test_a_map_that_is_none(standin_dir, tmp_path):
    elsewhere = tmp_path / "Elsewhere.SC2Map"
    elsewhere.write_bytes(b"{no map")
    async with matching(standin_dir) as match:
        with pytest.raises(GameFault, match="InvalidMapData") as raised:
            await match.start_episode(SETUP, elsewhere, 1)
        assert raised.value.kind is FaultKind.SETUP_FAILED
        assert str(elsewhere) in raised.value.map_note


async def test_a_map_for_one_player(standin_dir):
    async with matching(standin_dir) as match:
        path = find_map(find_installation(standin_dir), "DefeatRoaches")
        with pytest.raises(GameFault, match=r"InvalidPlayerSetup .* map for 1 participant"):
            await match.start_episode(replace(SETUP, map_name="DefeatRoaches"), path, 1)


@pytest.mark.usefixtures("leases")
@pytest.mark.parametrize("free", [3, 5])
async def test_too_few_ports(standin_dir, free, monkeypatch):
    """With too few ports, the launch must fail: a match needs four, and each game one more."""
    every = lease_module.candidate_ports(lease_module.ephemeral_range())
    spans = (every[start : start + free] for start in range(len(every)))
    span = next(span for span in spans if all(map(lease_module._is_free, span)))
    monkeypatch.setattr(lease_module, "candidate_ports", lambda _: span)
    with pytest.raises(GameFault, match=f"no free port between {span.start} and") as raised:
        async with matching(standin_dir):
            pass
    assert raised.value.kind is FaultKind.PORT_TAKEN


@pytest.mark.usefixtures("leases")
@pytest.mark.parametrize("phase", ["beginning", "first observation", "stepping"])
@pytest.mark.parametrize("side", list(MatchSide))
@pytest.mark.parametrize("harm", ["KILL", "STOP"])
async def test_a_harmed_side_is_named(standin_dir, side, phase, harm, played):
    async with matching(standin_dir, SHORT) as match:
        victim = game_of(match, side).pid
        with pytest.raises(GameFault) as raised:
            if phase == "beginning":
                strike(victim, harm)
            await match.start_episode(SETUP, played, 1)
            if phase == "first observation":
                strike(victim, harm)
            await match.observe()
            asyncio.get_running_loop().call_later(0.02, strike, victim, harm)
            while True:
                await match.step([[], []], 1)
        fault = raised.value
        killed = harm == "KILL"
        assert fault.kind is (FaultKind.GAME_EXITED if killed else FaultKind.DEADLINE), fault
        assert fault.detail.startswith(f"{side}: "), fault


@pytest.mark.parametrize("side", list(MatchSide))
async def test_a_side_that_is_harmed_in_join_is_named(standin_dir, side, played):
    """The fault must name the stopped side, although in join_game both sides wait."""
    async with matching(standin_dir, SHORT) as match:
        other = game_of(match, MatchSide.GUEST if side is MatchSide.HOST else MatchSide.HOST)
        joins = other.join_match

        async def join_after_harm(*arguments: Any) -> None:
            strike(game_of(match, side).pid, "STOP")
            await joins(*arguments)

        other.join_match = join_after_harm  # type: ignore[method-assign]
        with pytest.raises(GameFault) as raised:
            await match.start_episode(SETUP, played, 1)
        assert raised.value.detail.startswith(f"{side}: no reply to join_game"), raised.value
        assert "it is stopped" in raised.value.detail


@pytest.mark.parametrize("side", list(MatchSide))
async def test_a_side_that_hangs_is_named(standin_dir, side):
    """The fault must name the side that hangs, although the side that waits is silent, too."""
    async with matching(standin_dir, SHORT, seed=1) as match:
        hang = debug_pb2.DebugTestProcess(test=debug_pb2.DebugTestProcess.hang, delay_ms=20)
        order = debug_pb2.DebugCommand(test_process=hang)
        request = sc_pb.Request(debug=sc_pb.RequestDebug(debug=[order]))
        await game_of(match, side).request(request)
        await asyncio.sleep(0.1)
        with pytest.raises(GameFault) as raised:
            await match.step([[], []], 8)
        assert raised.value.kind is FaultKind.DEADLINE
        assert raised.value.detail.startswith(f"{side}: ")
        assert "does not read its requests" in raised.value.detail


async def test_the_cpu_time_of_both_counts(standin_dir):
    """A side that waits while the other side plays loops must not count as hung."""
    async with matching(standin_dir, seed=1) as match:
        for waiting, working in (match.games, match.games[::-1]):
            before_s = sum(one.cpu_s for one in waiting._activity_of_all())
            own_s = working.process.cpu_seconds()
            while working.process.cpu_seconds() < own_s + 0.05:
                await working.data()
            assert sum(one.cpu_s for one in waiting._activity_of_all()) > before_s + 0.04


@pytest.mark.timing
async def test_in_real_time_the_periods_of_both_begin_together(standin_dir):
    """Both sides' next periods must begin together, even if one side is at a later loop."""
    setup, loops = replace(SETUP, realtime=True), 8
    async with matching(standin_dir, setup=setup, seed=1) as match:
        for late in (match.host, match.guest):
            late.clock.delay(5)
            before = match.host.clock.next_begin, match.guest.clock.next_begin
            step = await match.step([[], []], loops)
            for side in step.sides:
                assert side.observed.game_loop >= max(before) + loops
            assert match.host.tick.gap_s < 1.0
            await match.step([[], []], loops)
            assert match.host.clock.next_begin == match.guest.clock.next_begin


@pytest.mark.parametrize("index", [0, 1])
async def test_in_real_time_each_side_has_its_own_steps(standin_dir, index):
    """One side must be able to step alone; a fault must name the side that is stopped."""
    setup = replace(SETUP, realtime=True)
    async with matching(standin_dir, SHORT, setup=setup, seed=1) as match:
        loops = [(await match.step_one(index, [], 4)).observed.game_loop for _ in range(3)]
        assert loops[-1] - loops[0] >= 8
        strike(match.games[1 - index].pid, "STOP")
        with pytest.raises(GameFault) as raised:
            for _ in range(3):
                await match.step_one(index, [], 4)
        assert raised.value.kind is FaultKind.DEADLINE
        assert raised.value.detail.startswith(f"{list(MatchSide)[1 - index]}: ")
        assert "it is stopped by a signal" in raised.value.detail
