"""The stand-in; it misbehaves once if a file orders a harm.

`faulty_game.py ORDERS …` starts this game; the game's own command line follows ORDERS. The file
ORDERS has `{"id": …, "harm": …, "at": …, "pid": …}` and further facts that the harm needs. The
first game that gets to the point `at` deletes the file and does the harm. If the order has a pid,
only the game with this pid does the harm. Points are the replies to `ping`, `create_game`,
`join_game`, `restart_game` and `step` (all replies sent together), and the `first observation`. The
points `start` and `handshake` come before any reply.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import select
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from picows import WSListener, WSUpgradeRequest, WSUpgradeResponseWithListener
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.protocol.observed import Head
from sc2standin.install import MARKER
from sc2standin.process.server import AfterStop, Client, GameServer, _header, _refuse
from sc2standin.process.state import State
from sc2standin.tempers import DEFAULT, Temper

Order = dict[str, Any]
TEXT = b"\x81"
BEGINNINGS = ("join_game", "restart_game")


class Orders:
    """The file with the order for one harm."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def take(self, *points: str) -> Order | None:
        """Take the order if it is for one of these points; no other process gets this order."""
        try:
            order: Order = json.loads(self._path.read_text())
            if order["at"] not in points or order.get("pid", os.getpid()) != os.getpid():
                return None
            self._path.with_suffix(f".{order['id']}").mkdir()  # mkdir succeeds in one game only
            self._path.unlink()
        except (FileNotFoundError, FileExistsError):
            return None  # there is no order, or another game was faster
        return order


class FaultyClient(Client):
    """Answers like the stand-in, unless an order says otherwise."""

    def __init__(self, server: GameServer, orders: Orders) -> None:
        super().__init__(server)
        self._orders = orders
        self._kind_before = ""

    def _send(self, replies: list[bytes]) -> None:
        order = self._orders.take(*self._points(replies)) if replies else None
        if order is None:
            super()._send(replies)
        else:
            self._harm(order, replies)

    def _points(self, replies: list[bytes]) -> list[str]:
        points = []
        for reply in replies:
            kind = sc_pb.Response.FromString(reply).WhichOneof("response") or "error"
            points.append(kind)
            if kind == "observation" and self._kind_before in BEGINNINGS:
                points.append("first observation")
            self._kind_before = kind
        return points

    def _harm(self, order: Order, replies: list[bytes]) -> None:
        assert self._transport is not None
        raw = self._transport.underlying_transport
        whole_frame = _header(len(replies[0])) + replies[0]
        match order["harm"]:
            case "close":
                self._transport.send_close()
                self._transport.disconnect()
            case "disconnect":
                self._transport.disconnect(graceful=False)
            case "slow":
                asyncio.get_running_loop().call_later(order["seconds"], super()._send, replies)
            case "half a frame":
                raw.write(whole_frame[: len(whole_frame) // 2])
            case "text":
                raw.write(TEXT + whole_frame[1:])
            case "flood the socket":
                raw.write(whole_frame * order["frames"])
            case _:
                if not harm_process(order):
                    replies = spoiled(order, replies)
                super()._send(replies)


def spoiled(order: Order, replies: list[bytes]) -> list[bytes]:  # noqa: PLR0912
    """Returns the replies after the ordered harm was done to them."""
    replies = list(replies)
    first = sc_pb.Response.FromString(replies[0])
    match order["harm"]:
        case "garbage":
            replies[0] = b"\xff" * 40
        case "truncated":
            replies[0] = replies[0][:-1]
        case "empty":
            replies[0] = b""
        case "duplicate":
            replies.insert(0, replies[0])
        case "swapped":
            replies[0], replies[1] = replies[1], replies[0]
        case "error":
            refusal = sc_pb.Response(id=first.id, status=first.status, error=["no"])
            replies[0] = refusal.SerializeToString()
        case "wrong id":
            first.id += 1
            replies[0] = first.SerializeToString()
        case "needs a hard reset":
            first.restart_game.need_hard_reset = True
            replies[0] = first.SerializeToString()
        case "spoiled state":
            last = Head.FromString(replies[-1])
            last.observation.observation.raw_data = b"\xff" * 40
            replies[-1] = last.SerializeToString()
        case "unknown unit":
            whole = sc_pb.Response.FromString(replies[-1])
            whole.observation.observation.raw_data.units[0].unit_type = order["type"]
            replies[-1] = whole.SerializeToString()
        case "not finite":
            whole = sc_pb.Response.FromString(replies[-1])
            (unit, *_) = whole.observation.observation.raw_data.units
            unit.health, unit.pos.x = math.inf, math.nan
            replies[-1] = whole.SerializeToString()
        case "fuzz":
            replies = fuzzed(replies, random.Random(order["seed"]))
        case _:
            raise ValueError(order["harm"])
    return replies


def fuzzed(replies: list[bytes], rng: random.Random) -> list[bytes]:
    """Returns the replies; one of them is spoiled in a way that any client can see.

    A reply ends with its id and its status. Bytes before the id are never changed alone, because no
    client can see that a digit in an observation was changed.
    """
    place = rng.randrange(len(replies))
    reply = replies[place]
    spoiled = [
        rng.randbytes(rng.randrange(1, 2 * len(reply))),
        reply[: rng.randrange(len(reply))],
        reply[:-2] + bytes([reply[-2] ^ 1 << rng.randrange(8), rng.randrange(8, 256)]),
        reply + rng.randbytes(rng.randrange(1, 9)),
    ]
    return [*replies[:place], rng.choice(spoiled), *replies[place + 1 :]]


def harm_process(order: Order) -> bool:
    """Do the ordered harm if it changes no reply; False if the harm is of another kind."""
    match order["harm"]:
        case "allocate":
            kept.append(b"\1" * order["bytes"])  # pages of zeros would take no memory
        case "flood the log":
            threading.Thread(target=flood_log, args=(order["seconds"],), daemon=True).start()
        case "leak":
            threading.Thread(target=leak, args=(order["bytes"],), daemon=True).start()
        case "fork":
            fork_children()
        case "ignore TERM":
            asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        case "spin":
            while True:
                pass
        case _:
            return False
    return True


kept: list[bytes] = []
"""The memory that this process has taken to do harm."""


def flood_log(seconds: float) -> None:
    """Print as fast as the pipe or the disk accepts the output."""
    end_s = time.monotonic() + seconds
    with suppress(OSError):  # the disk is full
        while time.monotonic() < end_s:
            os.write(sys.stdout.fileno(), b"flood " * 10_000)


def leak(size_bytes: int) -> None:
    """Take this much memory within about a second."""
    for _ in range(20):
        kept.append(b"\1" * (size_bytes // 20))
        time.sleep(0.05)


def fork_children() -> None:
    """Leave a child that ignores SIGTERM, and a grandchild whose parent has ended."""
    for generations in (1, 2):
        if os.fork() == 0:
            if generations == 2 and os.fork():
                os._exit(0)
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGHUP})
            os.closerange(0, 1024)
            while True:
                time.sleep(3600)


class FaultyServer(GameServer):
    """A server whose connections are `FaultyClient`s."""

    def __init__(self, state: State, orders: Orders) -> None:
        super().__init__(state, AfterStop.CATCH_UP)
        self._orders = orders

    def _admit(self, request: WSUpgradeRequest) -> WSListener | WSUpgradeResponseWithListener:
        if self._orders.take("handshake") is not None:
            return _refuse(503, b"as ordered")  # type: ignore[arg-type]
        admitted = super()._admit(request)
        return FaultyClient(self, self._orders) if isinstance(admitted, Client) else admitted


def start_impostor(port: int, report: Path) -> None:
    """Start another process, not a child of this one, that listens on the game's port."""
    if os.fork() == 0:
        os.setsid()
        parent_pid = os.getpid()
        if os.fork() == 0:
            while os.getppid() == parent_pid:
                time.sleep(0.001)  # a child of the game until its own parent ends
            os.closerange(0, 1024)  # this process must not hold the game's lease
            be_impostor(port, report)
        os._exit(0)
    os.wait()
    while not report.exists():
        time.sleep(0.001)


def be_impostor(port: int, report: Path) -> None:
    """Accept connections, and write for each one a line with the number of bytes that it sent."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", port))
    listener.listen()
    new = report.with_suffix(".new")
    new.write_text(f"{os.getpid()} {port}\n")
    new.rename(report)
    while True:
        visitor, _ = listener.accept()
        received = b""
        while select.select([visitor], [], [], 10.0)[0] and (part := visitor.recv(1000)):
            received += part
        visitor.close()
        with report.open("a") as notes:
            notes.write(f"{len(received)}\n")


def main(orders_file: str, *arguments: str) -> int:
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    orders = Orders(Path(orders_file))
    port = int(options["-port"])
    order = orders.take("start")
    if order is not None and order["harm"] == "exit":
        return int(order["status"])
    if order is not None and order["harm"] == "hang":
        time.sleep(3600)
    if order is not None:
        start_impostor(port, Path(order["report"]))
        if order["harm"] == "port stolen":
            time.sleep(3600)  # the game must not report that it cannot listen
    data_dir = Path(options["-dataDir"])
    temper = Temper(options.get("--temper", DEFAULT), data_dir / MARKER)
    server = FaultyServer(State(data_dir, Path(options["-tempDir"]), temper=temper), orders)
    return asyncio.run(server.serve(options["-listen"], port))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
