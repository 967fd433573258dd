"""Plays random requests against two game processes at once, and checks every reply.

Each request must get a reply in time, with the id that was sent. The game must raise no exception.
Both games must send the same bytes. Each process must stay alive, and end on SIGTERM.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from google.protobuf.message import DecodeError
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.install import install
from tests.support.duels import free_ports
from tests.support.fuzz.draw import Draw
from tests.support.fuzz.wire import TIMEOUT_S, Wire

SHOWN = 2000
"""An error message shows at most this number of characters of a request or reply."""


class FuzzFailure(AssertionError):
    """A request got no proper reply; the message shows the request and the reply."""


class Report:
    """Statistics of the requests that were played."""

    def __init__(self) -> None:
        self.replies: Counter[str] = Counter()
        """The number of replies of each kind; the kind of refusals is `error`."""
        self.games: Counter[str] = Counter()
        """The number of games begun on each map."""
        self.slowest_s = 0.0
        """The longest time in seconds for one request to both games."""


def play(
    count: int, seed: int, temporary: Path, progress: Callable[[int], None] | None = None
) -> Report:
    """Send `count` requests; raises FuzzFailure at the first request without a proper reply."""
    directory = temporary / "StarCraftII"
    executable = install(directory)
    maps = sorted(
        str(p.relative_to(directory / "Maps"))
        for p in directory.rglob("*.SC2Map")
        if p.parent.name != "Ladder"  # all ladder maps are the same map
    )
    report, draw = Report(), Draw(seed, maps)
    with ExitStack() as games:
        wires = [games.enter_context(_game(executable, directory, temporary)) for _ in range(2)]
        for number in range(count):
            frame = draw.frame()
            began_s = time.monotonic()
            try:
                replies = _ask(wires, frame)
            except OSError as error:
                raise FuzzFailure(_what(seed, number, frame, repr(error))) from error
            report.slowest_s = max(report.slowest_s, time.monotonic() - began_s)
            reply = sc_pb.Response.FromString(replies[0])
            problem = problem_of(frame, reply)
            if replies[0] != replies[1]:
                problem = f"two games differ: {sc_pb.Response.FromString(replies[1])}"
            if problem:
                raise FuzzFailure(_what(seed, number, frame, f"{problem}: {reply}"))
            draw.told(reply)
            report.replies[reply.WhichOneof("response") or "error"] += 1
            if reply.join_game.player_id:  # 0 if the file is no map (temper no-player)
                wires[0].send_frame(_GAME_INFO)
                info = sc_pb.Response.FromString(wires[0].receive()).game_info
                report.games[info.map_name] += 1
            if progress is not None:
                progress(number + 1)
    return report


_GAME_INFO = sc_pb.Request(game_info=sc_pb.RequestGameInfo()).SerializeToString()


def _ask(wires: list[Wire], frame: bytes) -> list[bytes]:
    for wire in wires:
        wire.send_frame(frame)
    return [wire.receive() for wire in wires]


def problem_of(frame: bytes, reply: sc_pb.Response) -> str:
    """The error in a reply; empty if there is none."""
    if any("Internal error" in error for error in reply.error):
        return "an exception in the game"
    if bool(reply.error) == (reply.WhichOneof("response") is not None):
        return "a reply is either an error or an answer"
    try:
        request = sc_pb.Request.FromString(frame)
    except DecodeError:
        return "" if reply.error else "an answer to a frame that cannot be decoded"
    if (request.HasField("id"), request.id) != (reply.HasField("id"), reply.id):
        return "another id than the request's"
    if reply.WhichOneof("response") not in (None, request.WhichOneof("request")):
        return "an answer to another kind of request"
    return ""


def _what(seed: int, number: int, frame: bytes, problem: str) -> str:
    try:
        request: object = sc_pb.Request.FromString(frame)
    except DecodeError:
        request = frame.hex()
    return f"seed {seed}, request {number}: {request!s:.{SHOWN}}\n{problem:.{SHOWN}}"


@contextmanager
def _game(executable: Path, directory: Path, temporary: Path) -> Iterator[Wire]:
    """A game process, and a connection to it; when the block ends, SIGTERM must end it in time."""
    (port,) = free_ports(1)
    with tempfile.TemporaryFile(dir=temporary) as errors:
        listen = f"-listen 127.0.0.1 -port {port}".split()
        process = subprocess.Popen(
            [executable, *listen, "-dataDir", directory, "-tempDir", temporary],
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        try:
            assert process.stdout is not None
            if not process.stdout.readline().startswith(b"Listening"):
                raise FuzzFailure("a game did not start")
            wire = Wire(port)
            try:
                yield wire
                process.terminate()
                status = process.wait(TIMEOUT_S)
                errors.seek(0)
                said = errors.read().decode()
                if status != 0 or said:
                    raise FuzzFailure(f"a game ended with status {status}: {said[-SHOWN:]}")
            finally:
                wire.socket.close()
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
