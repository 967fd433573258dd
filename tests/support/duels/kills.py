"""Kills, stops and ends one of two processes at a random phase, and watches the other one.

Rules that are checked: the other side has won within its time if the process is dead, waits if it
is stopped, and goes on if it is continued; SIGTERM always ends a process; no process and no port is
left.
"""

from __future__ import annotations

import random
import select
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from s2clientprotocol import sc2api_pb2 as sc_pb

from tests.support.duels.pair import DUEL, TWO, Pair, free_ports, join_request
from tests.support.fuzz.wire import TIMEOUT_S, Wire

PHASES = ("joining", "between two steps", "one waits", "both step")
HARMS = (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM)
QUIET_S = 0.1
"""How long a side is watched that must not answer."""
STEPS = 20


class DuelFailure(AssertionError):
    """A side did something else than it should; the message names the round."""


@dataclass(frozen=True)
class Round:
    """What happens to whom, and when."""

    phase: str
    harm: signal.Signals
    victim: int
    rng: random.Random

    def __str__(self) -> str:
        return f"{self.harm.name} to player {self.victim + 1} while {self.phase}"


def play(rounds: int, seed: int, directory: Path, temporary: Path) -> Counter[str]:
    """Play the rounds; returns how often each phase and harm was drawn."""
    executable = next(directory.glob("Versions/Base*/SC2_x64"))
    rng, played = random.Random(seed), Counter[str]()
    for number in range(rounds):
        plan = Round(rng.choice(PHASES), rng.choice(HARMS), rng.randrange(2), rng)
        played[str(plan)] += 1
        ports = free_ports(2)
        try:
            with (
                _game(executable, directory, temporary, ports[0]) as host,
                _game(executable, directory, temporary, ports[1]) as guest,
            ):
                pair = Pair(Wire(ports[0]), Wire(ports[1]))
                try:
                    _play_round(pair, [host, guest], plan)
                finally:
                    for wire in pair.wires:
                        wire.socket.close()
            for port in (*ports, *pair.ports):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        raise DuelFailure(f"port {port} is left")
        except (DuelFailure, OSError, subprocess.TimeoutExpired) as problem:
            raise DuelFailure(f"seed {seed}, round {number}, {plan}: {problem!r}") from problem
    return played


def _play_round(pair: Pair, processes: list[subprocess.Popen[bytes]], plan: Round) -> None:
    rng, victim = plan.rng, processes[plan.victim]
    survivor = pair.wires[1 - plan.victim]
    if plan.phase == "joining":
        request = sc_pb.RequestCreateGame(local_map=DUEL, player_setup=TWO)
        pair.wires[0].ask(create_game=request)
        for wire in pair.wires:
            time.sleep(rng.uniform(0.0, 0.03))
            _send(wire, join_game=join_request(pair.ports))
        time.sleep(rng.uniform(0.0, 0.03))
        victim.send_signal(plan.harm)
        return
    pair.begin(seed=1)
    for _ in range(rng.randrange(STEPS)):
        pair.step(8)
    steps = {"between two steps": (), "one waits": (survivor,), "both step": pair.wires}[plan.phase]
    for wire in steps:
        _send(wire, step=sc_pb.RequestStep(count=rng.choice((1, 8, 64))))
    time.sleep(rng.uniform(0.0, 0.01))
    victim.send_signal(plan.harm)
    is_asked = survivor in steps
    if plan.harm == signal.SIGSTOP:
        if _steps_until_ended(survivor, is_asked=is_asked, patience_s=QUIET_S):
            raise DuelFailure("the game went on without a player that hangs")
        is_asked = True
        victim.kill()
    if not _steps_until_ended(survivor, is_asked=is_asked, patience_s=TIMEOUT_S):
        raise DuelFailure("no answer")
    seen = survivor.ask(observation=sc_pb.RequestObservation()).observation
    results = {one.player_id: one.result for one in seen.player_result}
    if results.get(2 - plan.victim) != sc_pb.Victory:
        raise DuelFailure(f"the results are {results}")


def _steps_until_ended(wire: Wire, *, is_asked: bool, patience_s: float) -> bool:
    """Step until the game has ended; False if a step is not answered in time."""
    while True:
        if not is_asked:
            _send(wire, step=sc_pb.RequestStep(count=8))
        if not select.select([wire.socket], [], [], patience_s)[0]:
            return False
        if sc_pb.Response.FromString(wire.receive()).status == sc_pb.ended:
            return True
        is_asked = False


def _send(wire: Wire, **request: object) -> None:
    wire.send_frame(sc_pb.Request(**request).SerializeToString())  # type: ignore[arg-type]


@contextmanager
def _game(
    executable: Path, directory: Path, temporary: Path, port: int
) -> Iterator[subprocess.Popen[bytes]]:
    """A game process; unless it is dead or stopped, SIGTERM must end it."""
    process = subprocess.Popen(
        [
            *(executable, "-listen", "127.0.0.1", "-port", str(port)),
            *("-dataDir", directory, "-tempDir", temporary),
        ],
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        if not process.stdout.readline().startswith(b"Listening"):
            raise DuelFailure("a game did not start")
        yield process
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.wait(TIMEOUT_S)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
