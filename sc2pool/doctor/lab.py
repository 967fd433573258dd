"""Launches games for measurements, sends them raw requests, and always closes them.

The class Lab launches games, each with a Client. A Client sends requests to its game over a Line,
which is a websocket. A Ledger counts the replies of all games of an examination.

Rules: a reply is returned unchanged, even if it is wrong or late, because a measurement must see
the replies that a pool would correct or reject. Every wait has a time limit. A game that does not
reply raises `GameFault`, except in `Client.reply`, which returns None. `Lab.close_games` ends all
games.
"""

from __future__ import annotations

import asyncio
import socket
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import picows
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from s2clientprotocol import debug_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import Computer, GameSetup, Limits
from sc2pool.deadline import Deadline
from sc2pool.doctor.findings import Findings
from sc2pool.doctor.machine import Playable, locate
from sc2pool.errors import FaultKind, GameFault
from sc2pool.game.connection import Connection, GameAPI
from sc2pool.game.match import MatchLeases
from sc2pool.game.program.installation import MAP_SUFFIX, Installation
from sc2pool.game.program.launch import launch
from sc2pool.game.wire import frames
from sc2pool.processes.tree import STOPS_WITHIN_S, ProcessTree
from sc2pool.protocol import requests
from sc2pool.protocol.replies import Status
from sc2pool.protocol.requests import MatchPorts

USUAL_S: Final = 20.0
"""Time limit of a reply to a request that loads no map; even slow games reply sooner."""
STUB_LOOP: Final = (1 << 32) - 1
"""The game loop of an observation without content."""
_EXIT_GRACE_S: Final = 1.0
"""Time limit for a process to end after its socket was closed."""
_POLL_S: Final = 0.005
T = TypeVar("T")


class NotPossible(Exception):
    """A measurement lacks something that it needs; the message says what is missing."""


# ---- one game ---------------------------------------------------------------------------------


class Line(Connection):
    """A connection that keeps every message of the game, in order and unchecked."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self._came: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._parts: list[bytes] = []

    def on_ws_frame(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
        """Append one message, or None if the frame closes the connection."""
        del transport
        if frame.msg_type == picows.WSMsgType.CLOSE:
            self._came.put_nowait(None)
        elif frame.msg_type not in {picows.WSMsgType.PING, picows.WSMsgType.PONG}:
            self._parts.append(frame.get_payload_as_bytes())
            if frame.fin:
                self._came.put_nowait(b"".join(self._parts))
                self._parts = []

    def on_ws_disconnected(self, transport: picows.WSTransport) -> None:
        """Append None, which marks the end of the connection."""
        super().on_ws_disconnected(transport)
        self._came.put_nowait(None)

    def post(self, asked: Sequence[sc_pb.Request]) -> None:
        """Send requests without waiting for their replies."""
        if self._transport is not None:
            self._transport.underlying_transport.write(frames(asked))

    async def next_message(self, within_s: float) -> bytes | None:
        """The next message, None if the connection ends; raises `TimeoutError` if it is late."""
        async with asyncio.timeout(within_s):
            return await self._came.get()


@dataclass
class Ledger:
    """Counts of the replies of all games of an examination."""

    replies: int = 0
    warnings: Counter[str] = field(default_factory=Counter)
    """How often each text in `Response.error` came in a reply that is not a refusal."""
    mistaken: Counter[str] = field(default_factory=Counter)
    """Counts of the replies whose kind or id does not fit the request."""

    def note(self, asked: sc_pb.Request, reply: sc_pb.Response) -> None:
        kind, got = asked.WhichOneof("request") or "nothing", reply.WhichOneof("response")
        self.replies += 1
        if got is not None:
            self.warnings.update(f"{kind}: {text}" for text in reply.error)
            if got != kind:
                self.mistaken[f"a {got} as the reply to {kind}"] += 1
        if asked.HasField("id") and reply.HasField("id") and reply.id != asked.id:
            self.mistaken[f"another id in the reply to {kind}"] += 1


class Client:
    """A launched game and its connection; used by one asyncio task at a time.

    `status` is from the newest reply; `player_id` is the player's id in the latest game.
    `launched_s` is the time from the start of the process to the first reply.
    """

    def __init__(self, api: GameAPI, line: Line, ledger: Ledger) -> None:
        self.api = api
        self.process = api.process
        self.pid = api.pid
        self.status = Status.UNKNOWN
        self.launched_s = 0.0
        self.player_id = 0
        self._line = line
        self._ledger = ledger
        self._due: deque[sc_pb.Request] = deque()
        """The requests that have no reply yet, the oldest first."""
        self._next_id = 1

    def close(self) -> None:
        """Kill the game and release its resources; may be called again."""
        self.api.close()

    # ---- messages -------------------------------------------------------------------------

    def post(self, *asked: sc_pb.Request, numbered: bool = True) -> None:
        """Send requests without waiting for replies; if `numbered`, each request gets a new id."""
        for request in asked:
            if numbered:
                request.id = self._next_id
                self._next_id += 1
            self._due.append(request)
        self._line.post(asked)

    async def reply(self, within_s: float) -> sc_pb.Response | None:
        """The reply to the oldest unanswered request; None if no reply comes in time.

        Raises `GameFault` if the game has ended, has closed the connection, or has sent a message
        that cannot be decoded or that answers no request.
        """
        try:
            content = await self._line.next_message(within_s)
        except TimeoutError:
            return None
        if content is None:
            raise await self._end()
        if not self._due:
            raise GameFault(FaultKind.BAD_REPLY, "a message came without a request")
        asked = self._due.popleft()
        try:
            reply: sc_pb.Response = sc_pb.Response.FromString(content)
        except DecodeError as error:
            kind = asked.WhichOneof("request")
            detail = f"the reply to {kind} cannot be decoded: {error}"
            raise GameFault(FaultKind.BAD_REPLY, detail) from None
        self._ledger.note(asked, reply)
        self.status = Status(reply.status)
        return reply

    async def ask(self, asked: sc_pb.Request, within_s: float = USUAL_S) -> sc_pb.Response:
        """Send one request and return its reply, which may be a refusal.

        Replies to earlier requests are received first and dropped. Raises `GameFault` as `reply`
        does, and with the kind DEADLINE if a reply does not come in time.
        """
        (reply,) = await self.ask_all([asked], within_s)
        return reply

    async def ask_all(
        self, asked: Sequence[sc_pb.Request], within_s: float = USUAL_S
    ) -> list[sc_pb.Response]:
        """Send several requests together and return their replies; see `ask`."""
        self.post(*asked)
        deadline = Deadline.after(within_s)
        replies: list[sc_pb.Response] = []
        while self._due:
            kind = self._due[0].WhichOneof("request")
            reply = await self.reply(max(0.0, deadline.remaining_s()))
            if reply is None:
                raise GameFault(FaultKind.DEADLINE, f"no reply to {kind} within {within_s:g} s")
            replies.append(reply)
        return replies[-len(asked) :]

    async def carry_out(self, asked: sc_pb.Request, within_s: float = USUAL_S) -> sc_pb.Response:
        """Like `ask`, but also raises `GameFault` if the game refuses the request."""
        return carried_out(await self.ask(asked, within_s), str(asked.WhichOneof("request")))

    async def _end(self) -> GameFault:
        if await self.ends_within(_EXIT_GRACE_S):
            return self.process.exit_fault()
        return GameFault(FaultKind.CONNECTION_LOST, "the game closed the connection")

    async def ends_within(self, limit_s: float) -> bool:
        """Wait for the process's end; False if the process is still running after `limit_s`."""
        deadline = Deadline.after(limit_s)
        while self.process.exit_code() is None:
            if deadline.expired():
                return False
            await asyncio.sleep(_POLL_S)
        return True

    # ---- a game ---------------------------------------------------------------------------

    async def begin(
        self, setup: GameSetup, map_path: Path, seed: int | None = None, data: bytes = b""
    ) -> None:
        """Leave the previous game, create one and join it; raises `GameFault` if this fails."""
        await self.leave()
        await self.create(setup, map_path, seed, data)
        await self.join(setup)

    async def create(
        self, setup: GameSetup, map_path: Path, seed: int | None = None, data: bytes = b""
    ) -> None:
        """Create a game without joining it; raises the errors of `begin`."""
        create = requests.create_game(setup, map_path, seed, data)
        await self.carry_out(create, Limits().create_join_s)

    async def join(self, setup: GameSetup, ports: MatchPorts | None = None, name: str = "") -> None:
        """Join the created game; raises the errors of `begin`."""
        join = requests.join_game(setup, ports, name)
        reply = await self.carry_out(join, Limits().create_join_s)
        self.player_id = reply.join_game.player_id
        if self.status is not Status.IN_GAME:
            raise GameFault(
                FaultKind.BAD_REPLY,
                f"join_game gave player {self.player_id} and the status {status_of(reply)}",
            )

    async def leave(self) -> None:
        """Leave the current game or replay, if any."""
        if self.status in {Status.IN_GAME, Status.ENDED, Status.IN_REPLAY}:
            await self.ask(requests.leave_game())

    async def restart(self) -> sc_pb.ResponseRestartGame:
        """Restart the game; raises the errors of `begin`."""
        return (await self.carry_out(requests.restart_game(), Limits().reset_s)).restart_game

    async def observe(self, *, disable_fog: bool = False) -> sc_pb.ResponseObservation:
        """Observe the current state; raises the errors of `begin`."""
        return (await self.carry_out(requests.observation(disable_fog=disable_fog))).observation

    async def loop(self) -> int:
        """Observe the current game loop; raises the errors of `begin`."""
        return (await self.observe()).observation.game_loop

    async def step(self, loops: int, within_s: float = 60.0) -> sc_pb.Response:
        """Step the game and return its reply; after the game's end, this may be a refusal."""
        return await self.ask(requests.step(loops), within_s)

    async def debug(self, *commands: debug_pb2.DebugCommand) -> None:
        """Send debug commands; raises the errors of `begin`."""
        await self.carry_out(debug_request(*commands))

    async def step_to_end(self, most_loops: int, at_a_time: int = 240) -> int | None:
        """Step to the end of the game or replay; returns the loops, or None without an end."""
        status = self.status
        for loops in range(at_a_time, most_loops + at_a_time, at_a_time):
            reply = await self.step(at_a_time)
            if self.status is not status or refusal(reply):
                return loops
        return None

    def result(self, seen: sc_pb.ResponseObservation) -> str:
        """The player's result in an observation; empty if the observation has no result."""
        own = (one.result for one in seen.player_result if one.player_id == self.player_id)
        return next(map(sc_pb.Result.Name, own), "")


# ---- messages ---------------------------------------------------------------------------------


def debug_request(*commands: debug_pb2.DebugCommand) -> sc_pb.Request:
    return sc_pb.Request(debug=sc_pb.RequestDebug(debug=commands))


def end_game(victory: bool = False) -> debug_pb2.DebugCommand:
    """The debug command that ends the game: the player surrenders or, with `victory`, wins."""
    kind = debug_pb2.DebugEndGame
    result = kind.DeclareVictory if victory else kind.Surrender
    return debug_pb2.DebugCommand(end_game=kind(end_result=result))


def start_replay(
    content: bytes, player: int = 1, *, disable_fog: bool = False, realtime: bool = False
) -> sc_pb.Request:
    """A request that starts a replay with the sight of a player; player 0 sees the whole map."""
    start = sc_pb.RequestStartReplay(
        replay_data=content,
        observed_player_id=player,
        disable_fog=disable_fog,
        realtime=realtime,
        options=sc_pb.InterfaceOptions(raw=True),
    )
    return sc_pb.Request(start_replay=start)


def kill(units: Sequence[raw_pb2.Unit]) -> debug_pb2.DebugCommand:
    tags = [unit.tag for unit in units]
    return debug_pb2.DebugCommand(kill_unit=debug_pb2.DebugKillUnit(tag=tags))


def units_of(seen: sc_pb.ResponseObservation, *alliances: int) -> list[raw_pb2.Unit]:
    return [unit for unit in seen.observation.raw_data.units if unit.alliance in alliances]


VERY_EASY: Final = Computer(difficulty=sc_pb.VeryEasy)
WORKERS: Final = {45: "Terran", 84: "Protoss", 104: "Zerg"}
"""The unit types of workers, and their races."""


def status_of(reply: sc_pb.Response) -> str:
    return Status(reply.status).name.lower()


def refusal(reply: sc_pb.Response) -> str:
    """The text of a reply that refuses a request; empty if the request was carried out."""
    kind = reply.WhichOneof("response")
    if kind is None:
        return "; ".join(reply.error) or "an empty reply"
    answer: Any = getattr(reply, kind)
    if "error" in answer.DESCRIPTOR.fields_by_name and answer.HasField("error"):
        details = getattr(answer, "error_details", "")
        return f"{type(answer).Error.Name(answer.error)} {details}".rstrip()
    return ""


def carried_out(reply: sc_pb.Response, kind: str) -> sc_pb.Response:
    """Return the reply if its request was carried out; `GameFault` (BAD_REPLY) if not."""
    why = refusal(reply)
    if why:
        detail = f"{kind} was refused (status {status_of(reply)}): {why}"
        raise GameFault(FaultKind.BAD_REPLY, detail)
    return reply


# ---- several games ----------------------------------------------------------------------------


_MELEE: Final = ("Simple64", "Flat64", "Flat96", "Simple96", "Simple128")
"""The names of melee maps for two players; other clients' packages contain these maps."""
_MINING: Final = ("BuildMarines", "CollectMineralsAndGas")
_SPECIAL: Final = ("mini_games", "smac_maps", "smac_duels", "test", "example")
"""Folders whose maps are not for a melee."""


def _first_of(installation: Installation, names: Sequence[str]) -> Path | None:
    return next(filter(None, (locate(installation, name) for name in names)), None)


class Lab:
    """Launches and owns the games of all measurements, and holds data that measurements share.

    `mini` is the setup and the map of a short game of one player. `melee_map` is a map for two
    players with towns. `mini` or `melee_map` is None if no such map is installed. The lab's owner
    deletes `folder`, which is for temporary files. If `patient` is False, measurements take less
    time.
    """

    def __init__(
        self,
        installation: Installation,
        mini: Playable | None,
        findings: Findings,
        *,
        patient: bool = True,
    ) -> None:
        self._mini = mini
        self.melee_map = _first_of(installation, _MELEE)
        if self.melee_map is None and installation.maps is not None:
            others = (
                path
                for path in sorted(installation.maps.rglob(f"*{MAP_SUFFIX}"))
                if path.parent.name.lower() not in _SPECIAL
            )
            self.melee_map = next(others, None)
        self._mining_map = _first_of(installation, _MINING) or self.melee_map
        self.folder = Path(tempfile.mkdtemp(prefix="sc2pool-doctor-"))
        # A crashing game writes its core file to the working directory.
        cwd = installation.cwd or self.folder
        self.installation = replace(installation, cwd=cwd)
        self.findings = findings
        self.ledger = Ledger()
        self.patient = patient
        self.deadline = Deadline.after(None)
        self.clients: list[Client] = []
        self._leases: list[MatchLeases] = []

    def close_games(self) -> None:
        """Close all games; may be called again."""
        for client in self.clients:
            client.close()
        for leases in self._leases:
            leases.release()
        self.clients, self._leases = [], []

    def paced(self, usual_s: float) -> float:
        """The time `usual_s`, or a quarter of it if `patient` is False."""
        return usual_s if self.patient else usual_s / 4

    def while_time(self, plan: Iterable[T], least_s: float) -> Iterator[T]:
        """Yield a plan's first item, then further items if at least `least_s` seconds remain."""
        for number, one in enumerate(plan):
            if number and self.deadline.remaining_s() < least_s:
                return
            yield one

    def mini(self, *, realtime: bool = False) -> Playable:
        """The setup of a mini-game, and the path of its map; raises `NotPossible` without a map."""
        if self._mini is None:
            raise NotPossible("no map to play was found")
        setup, path = self._mini
        return replace(setup, realtime=realtime), path

    def melee(self, **options: Any) -> Playable:
        """The setup of a melee, and the path of its map; raises `NotPossible` without a map."""
        if self.melee_map is None:
            raise NotPossible("no melee map was found (such as Simple64)")
        return GameSetup(self.melee_map.stem, **options), self.melee_map

    def mining(self) -> Playable:
        """A game's setup on a map with minerals, and the map's path; may raise `NotPossible`."""
        path = self._mining_map
        if path is None:
            raise NotPossible("no map with minerals was found (such as BuildMarines or Simple64)")
        # Without an opponent, a game on a melee map ends in its first loop.
        opponents = (VERY_EASY,) if path == self.melee_map else ()
        return GameSetup(path.stem, opponents=opponents), path

    async def launch(self, *, in_turn: bool = True, core_file_bytes: int = 0) -> Client:
        """Launch a game; arguments and errors are those of `sc2pool.game.program.launch.launch`."""
        began_s = time.monotonic()
        limit_s = Limits().launch_s
        api = await launch(
            self.installation,
            Deadline.after(min(limit_s, self.deadline.remaining_s())),
            directory=self.folder,
            connection_type=Line,
            in_turn=in_turn,
            core_file_bytes=core_file_bytes,
        )
        assert isinstance(api.connection, Line)
        client = Client(api, api.connection, self.ledger)
        self.clients.append(client)
        await client.carry_out(requests.ping(), limit_s)
        client.launched_s = time.monotonic() - began_s
        return client

    async def pair(self) -> Pair:
        """Launch two games for matches; raises the errors of `launch`."""
        leases = MatchLeases()
        self._leases.append(leases)
        host, guest = await both(self.launch(), self.launch())
        return Pair(host, guest, leases.ports)


@dataclass
class Pair:
    host: Client
    guest: Client
    ports: MatchPorts

    @property
    def sides(self) -> tuple[Client, Client]:
        return self.host, self.guest

    async def begin(self, setup: GameSetup, map_path: Path, seed: int | None = None) -> None:
        """Create and join a match; see `Client.begin`."""
        await asyncio.gather(*(side.leave() for side in self.sides))
        await self.host.create(replace(setup, participants=2), map_path, seed)
        await both(
            self.host.join(setup, self.ports, "host"), self.guest.join(setup, self.ports, "guest")
        )

    async def step(self, loops: int) -> None:
        """Step both sides' games; a game's refusal is no error."""
        await both(self.host.step(loops), self.guest.step(loops))


@contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """Stop these processes and all their descendants during the block."""
    tree = ProcessTree(*pids)
    tree.stop(Deadline.after(STOPS_WITHIN_S))
    try:
        yield
    finally:
        tree.resume()


async def both(*deeds: Any) -> list[Any]:
    """Run awaitables concurrently; if one fails, cancel the others and raise its error."""
    tasks = [asyncio.ensure_future(deed) for deed in deeds]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
