"""The games of one instance: a single game, or two games that play against each other (a match).

    Calls: launch ─► start_episode ─► observe ─► step … step ─► start_episode … ─► close.
                  host                host and guest together
    Begin: leave both ─► create ─► join both

Rules:
* A game of one player is a match of one side. Such a match waits for no other game, and its faults
  name no side.
* The two sides carry out their requests concurrently, and the match waits for both.
* A fault of either side is the fault of the match, and the fault's detail names the side. If a
  reply is missing, `judge` finds the side that should have sent it.
* A game that has ended on one side has ended on both, and the results are opposite. Results that
  contradict each other are counted, and replaced by Undecided.
* The games are started one after the other (see `launch`), as in python-sc2 on Linux.
* A match of two begins each episode with create_game, because it cannot be restarted.
* In real time the game plays a loop when both processes have reached it by their own clocks.
* Besides their API ports, two games need four ports to find each other: two of the host and two of
  the guest. These ports are held until the match is closed, because all its episodes use them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import GameSetup, Limits
from sc2pool.deadline import Deadline
from sc2pool.errors import FaultKind, GameFault
from sc2pool.game.game import NOWHERE, Game, ResetKind, Step, Surroundings
from sc2pool.game.hang_detection import MatchSide, SideEvidence, judge
from sc2pool.game.program.installation import Installation
from sc2pool.game.program.launch import refusals_as_faults
from sc2pool.game.program.lease import PortLease
from sc2pool.protocol.observed import Observed
from sc2pool.protocol.requests import MatchPorts

T = TypeVar("T")

_WATCH_S: Final = 0.2
"""How many seconds both games are watched after a fault. CPU time is counted in hundredths of a
second, and the end of a process may be noticed a little later than its consequences."""
_OPPOSITE: Final[dict[int, int]] = {
    sc_pb.Victory: sc_pb.Defeat,
    sc_pb.Defeat: sc_pb.Victory,
    sc_pb.Tie: sc_pb.Tie,
    sc_pb.Undecided: sc_pb.Undecided,
}


class MatchStep(NamedTuple):
    """The result of one step for all sides."""

    sides: tuple[Step, ...]
    """The host's step, and in a match of two also the guest's step."""
    ended: bool
    """True if the game has ended on at least one side."""


class Match:
    """One or two running games; used by one asyncio task at a time. Raises the errors of `Game`."""

    def __init__(self, games: Sequence[Game], leases: MatchLeases | None = None) -> None:
        self.games = tuple(games)
        self.contradiction = ""
        """The results that the sides have reported, if they contradict each other; else empty."""
        self._over = False
        """Whether the running episode's game has ended on at least one side."""
        self._leases = leases
        """The leases of the match's ports; None if there is only one game."""
        if leases is not None:
            host, guest = self.games
            host.plays_with(guest)
            guest.plays_with(host)

    @classmethod
    async def launch(
        cls,
        installation: Installation,
        limits: Limits,
        *,
        players: int,
        deadline: Deadline,
        surroundings: Surroundings = NOWHERE,
    ) -> Match:
        """Starts one game for each of the `players` (1 or 2), and waits until all answer."""
        games: list[Game] = []
        leases = None
        with ExitStack() as undo:
            if players > 1:
                with refusals_as_faults():
                    leases = MatchLeases()
                undo.callback(leases.release)
            for naming in _NAMING[:players] if players > 1 else (_NAMELESS,):
                with naming:
                    game = await Game.launch(
                        installation, limits, deadline=deadline, surroundings=surroundings
                    )
                undo.callback(game.close)
                games.append(game)
            undo.pop_all()
        return cls(games, leases)

    @property
    def host(self) -> Game:
        """The game of player 1. In a match of two it creates the game that both play."""
        return self.games[0]

    @property
    def guest(self) -> Game:
        """The game of player 2, in a match of two."""
        return self.games[1]

    def close(self) -> None:
        """Kills all games and releases everything, in bounded time; may be called again."""
        for game in self.games:
            game.close()
        if self._leases is not None:
            self._leases.release()

    def exit_fault(self) -> GameFault:
        """The fault of the game whose process has ended; a match's fault names the side."""
        if self._leases is None:
            return self.host.exit_fault()
        for side, game in zip(MatchSide, self.games, strict=True):
            if game.process.exit_code() is not None:
                return _named(side, game.exit_fault())
        return GameFault(FaultKind.GAME_EXITED, "a game of the match ended")

    def log_tail(self) -> str:
        """The last lines of the games' output, each below its side's name; also after `close`."""
        if self._leases is None:
            return self.host.process.log_tail()
        tails = zip(MatchSide, (game.process.log_tail() for game in self.games), strict=True)
        return "\n".join(f"{side}:\n{tail}" for side, tail in tails if tail)

    # ---- playing ----------------------------------------------------------------------------

    async def start_episode(
        self,
        setup: GameSetup,
        map_path: Path,
        seed: int | None,
        races: Sequence[int] | None = None,
    ) -> ResetKind:
        """Begins an episode like `Game`; without `races`, all sides play the race in `setup`."""
        if self._leases is None:
            return await self.host.start_episode(setup, map_path, seed)
        self._over, self.contradiction = False, ""
        for game in self.games:
            game.begin_phase(map_path)
        try:
            races = races or [setup.race] * 2
            await self._create_and_join(setup, map_path, seed, races, self._leases.ports)
        except GameFault as fault:
            raise self.host.about_map(fault, map_path) from fault
        return ResetKind.CREATE

    async def _create_and_join(
        self,
        setup: GameSetup,
        map_path: Path,
        seed: int | None,
        races: Sequence[int],
        ports: MatchPorts,
    ) -> None:
        await self._both(self.host.leave(), self.guest.leave())
        path = await self._saved(map_path)
        try:
            with self.naming(0):
                await self.host.create(setup, path, seed)
        except GameFault as fault:
            if path == map_path or fault.kind is not FaultKind.SETUP_FAILED:
                raise
            # A cleaner of temporary files may just have deleted the saved map.
            await self._saved(map_path)
            with self.naming(0):
                await self.host.create(setup, path, seed)
        await self._both(
            *(
                game.join_match(replace(setup, race=race), ports, str(side))
                for side, game, race in zip(MatchSide, self.games, races, strict=True)
            )
        )

    async def _saved(self, map_path: Path) -> Path:
        """The path by which both games know the map. A map outside the map folder is sent first."""
        content = self.host.content_to_send(map_path)
        if not content:
            return map_path
        name = map_path.name
        # One game after the other, because both may save the map in the same folder.
        for i, game in enumerate(self.games):
            with self.naming(i):
                await game.save_map(name, content)
        return Path(name)

    async def observe(self) -> tuple[Observed, ...]:
        """Observes the current state, once for each side."""
        return await self._both(*(game.observe() for game in self.games))

    async def step(self, actions: Sequence[Sequence[sc_pb.Action]], loops: int) -> MatchStep:
        """Sends the commands of all sides, advances the game, and observes; see `Game.step`."""
        if self.host.realtime and self._leases is not None:
            self._align()
        sides = zip(self.games, actions, strict=True)
        steps = await self._both(*(game.step(own, loops) for game, own in sides))
        ended = any(step.ended for step in steps)
        if ended and self._leases is not None:
            self._settle()
        return MatchStep(steps, ended)

    def _align(self) -> None:
        """Let the next periods of both sides begin at the same loop, the later of their two loops.

        The sides act together. With different periods, one side would be late in every later step.
        """
        clocks = [game.clock for game in self.games]
        loop = max(clock.next_begin for clock in clocks)
        for clock in clocks:
            clock.delay(loop - clock.begun_at)

    async def step_one(self, index: int, actions: Sequence[sc_pb.Action], loops: int) -> Step:
        """Steps one side (0: the host) in real time, with or without the other. See `Game.step`."""
        side = list(MatchSide)[index]
        try:
            step = await self.games[index].step(actions, loops)
        except GameFault as fault:
            raise await self._blamed(side, fault, answered=(False, False)) from fault
        if step.ended or self._over:
            self._settle()
        return step._replace(ended=self._over)

    async def game_info(self) -> tuple[sc_pb.ResponseGameInfo, ...]:
        """Requests the map, the players and the terrain from each side's game."""
        return await self._both(*(game.game_info() for game in self.games))

    @property
    def untold_end(self) -> str:
        """The sign of the game's end, if no game reported its result; else empty."""
        if self._leases is None:
            return self.host.untold_end
        if self.host.result is not None:
            return ""
        return self.host.untold_end or self.guest.untold_end

    def _settle(self) -> None:
        """Complete the results after the game's end; one side may lack its own result."""
        self._over = True
        host, guest = self.host.result, self.guest.result
        if host is None and guest is not None:
            self.host.result = _OPPOSITE[guest]
        elif guest is None and host is not None:
            self.guest.result = _OPPOSITE[host]
        elif host is not None and guest is not None and _OPPOSITE[host] != guest:
            self.host.result = self.guest.result = sc_pb.Undecided
            names = (sc_pb.Result.Name(result) for result in (host, guest))
            self.contradiction = " and ".join(names)

    # ---- two sides --------------------------------------------------------------------------

    def naming(self, index: int) -> AbstractContextManager[None]:
        """Let a fault raised in the block name this side (0 is the host), in a match of two."""
        return _NAMELESS if self._leases is None else _NAMING[index]

    async def _both(self, *asked: Coroutine[Any, Any, T]) -> tuple[T, ...]:
        """Run the sides' coroutines concurrently; a fault names the side to blame."""
        if self._leases is None:
            (of_host,) = asked
            return (await of_host,)
        tasks = [asyncio.ensure_future(one) for one in asked]
        for side, failure in zip(MatchSide, await _failures(tasks), strict=True):
            if isinstance(failure, GameFault):
                answered = [not task.cancelled() and task.exception() is None for task in tasks]
                raise await self._blamed(side, failure, answered) from failure
            if failure is not None:
                raise failure
        return tuple(task.result() for task in tasks)

    async def _blamed(
        self, side: MatchSide, fault: GameFault, answered: Sequence[bool]
    ) -> GameFault:
        """The fault of the side to blame; a side that has not `answered` may wait for the other."""
        if fault.kind is FaultKind.GAME_EXITED:
            return _named(side, fault)
        evidence = await self._evidence(answered)
        if any(seen.exited for seen in evidence.values()):
            return self.exit_fault()
        if fault.kind is not FaultKind.DEADLINE:
            return _named(side, fault)
        sides, why = judge(evidence)
        return fault.with_detail(f"{' or '.join(sides)}: {fault.detail}; {why}")

    async def _evidence(self, answered: Sequence[bool]) -> dict[MatchSide, SideEvidence]:
        began_s = time.monotonic()
        before_s = [game.process.cpu_seconds() for game in self.games]
        await asyncio.sleep(_WATCH_S)
        watched_s = time.monotonic() - began_s
        return {
            side: SideEvidence(
                answered=has_answered,
                exited=game.process.exit_code() is not None,
                stopped=game.process.is_stopped(),
                unread=bool(game.unread_bytes()),
                cpu_share=(game.process.cpu_seconds() - used_s) / watched_s,
            )
            for side, game, has_answered, used_s in zip(
                MatchSide, self.games, answered, before_s, strict=True
            )
        }


async def _failures(tasks: Sequence[asyncio.Future[Any]]) -> list[BaseException | None]:
    """Each task's exception, or None. A failure or a cancelled wait cancels all other tasks."""
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        if not all(task.done() for task in tasks):
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        # Always read the exceptions: asyncio prints unread ones.
        failures = [None if task.cancelled() else task.exception() for task in tasks]
    return failures


def _named(side: MatchSide, fault: GameFault) -> GameFault:
    return fault.with_detail(f"{side}: {fault.detail}")


class _Naming(AbstractContextManager[None]):
    """A context that adds a side's name to the faults raised in its block; can be used again."""

    def __init__(self, side: MatchSide) -> None:
        self._side = side

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, GameFault):
            raise _named(self._side, error) from error


_NAMING: Final = tuple(map(_Naming, MatchSide))
"""Context managers that add the host's or the guest's name to faults."""
_NAMELESS: Final = nullcontext()
"""A context manager that adds no name to faults, for a game that is alone."""


class MatchLeases:
    """The leases of the four ports of a match, held until `release`; see `PortLease.acquire`."""

    def __init__(self) -> None:
        leased = []
        with ExitStack() as undo:
            for _ in MatchPorts._fields:
                lease = PortLease.acquire()
                undo.callback(lease.release)
                leased.append(lease.port)
            self._held = undo.pop_all()
        self.ports = MatchPorts(*leased)

    def release(self) -> None:
        """Releases the ports; may be called again."""
        self._held.close()
