"""The bare wire: the rate of n games that never wait for each other and whose replies stay unread.

Each of n processes has a game and a websocket, and waits for no other process. Each process sends
the requests for an action, a step and an observation in one write, and sends the next requests when
the three replies have come. Only the boundaries of the replies' frames are read. The rate of these
processes is the upper limit for every pool. After each round one observation is read, to prove that
all steps were made. `bench.child` starts each process as `python -m bench.baselines.wire ROOT MAP`.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import picows
from s2clientprotocol import sc2api_pb2 as sc_pb

from bench import child
from bench.episodes import WARM_UP_S, WARM_UP_STEPS, EpisodeBudget
from sc2pool.game.program.installation import find_map, read_installation
from sc2pool.game.program.lease import HOST, PortLease
from sc2pool.game.program.process import GameProcess
from sc2pool.game.wire import frames
from sc2pool.protocol import requests
from sc2pool.waiting import run_in_selector_loop

FRAMES = 3
READY_WITHIN_S = 60.0
N_BURSTS = 64


class WireSide:
    """A side (compared program): n processes, each with a game on the bare wire."""

    def __init__(self, n: int, map_name: str, root: str, episode_steps: int) -> None:
        self._children = [
            child.start_asked("bench.baselines.wire", root, map_name) for _ in range(n)
        ]
        self._episode_steps = episode_steps
        self._budget = EpisodeBudget(episode_steps)

    def prepare(self) -> None:
        if self._budget.needs_reset():
            child.ask(self._children, "reset")
            self._budget.reset()
        child.ask(self._children, "run", WARM_UP_S, WARM_UP_STEPS)
        self._budget.spend(WARM_UP_STEPS)

    def run(self, seconds: float) -> tuple[int, float]:
        done = child.ask(self._children, "run", seconds, self._budget.left)
        self._budget.spend(max(steps for steps, _ in done))
        total = sum(steps for steps, _ in done)
        return total, total / sum(steps / elapsed_s for steps, elapsed_s in done)

    def close(self) -> None:
        """End each child process and its game."""
        child.end(self._children)


class Wire(picows.WSListener):
    """The connection to a game."""

    def on_ws_connected(self, transport: picows.WSTransport) -> None:
        self._write = transport.underlying_transport.write
        self._frames = 0
        self._until_s = 0.0
        self._most = 0

    async def ask(self, request: sc_pb.Request) -> sc_pb.Response:
        """Send one request; returns its parsed reply."""
        self._waited_for = asyncio.get_running_loop().create_future()
        self._frames = -1
        self._write(frames([request]))
        return await self._waited_for

    async def run(self, bursts: list[bytes], seconds: float, most: int) -> tuple[int, float]:
        """Send the bursts of requests, each after the last reply to the previous burst has come."""
        self._bursts = bursts
        self._waited_for = asyncio.get_running_loop().create_future()
        self._frames = self._steps = 0
        self._most = most
        began_s = time.perf_counter()
        self._until_s = began_s + seconds
        self._write(bursts[0])
        await self._waited_for
        return self._steps, time.perf_counter() - began_s

    def on_ws_frame(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
        del transport
        if self._frames < 0:
            self._waited_for.set_result(sc_pb.Response.FromString(frame.get_payload_as_bytes()))
            return
        self._frames += 1
        if self._frames < FRAMES:
            return
        self._frames = 0
        self._steps += 1
        if self._steps == self._most or time.perf_counter() >= self._until_s:
            self._waited_for.set_result(None)
        else:
            self._write(self._bursts[self._steps % N_BURSTS])

    def on_ws_disconnected(self, transport: picows.WSTransport) -> None:
        del transport
        if not self._waited_for.done():
            self._waited_for.set_exception(ConnectionError("the game closed the connection"))


def random_walks(observation: sc_pb.Observation, area: Any, step_mul: int) -> list[bytes]:
    """Groups of requests; each group sends all units of the player to a random place on the map."""
    tags = [unit.tag for unit in observation.raw_data.units if unit.alliance == 1]
    rng = random.Random(0)
    bursts = []
    for _ in range(N_BURSTS):
        action = sc_pb.Action()
        order = action.action_raw.unit_command
        order.ability_id = 16  # walk
        order.unit_tags.extend(tags)
        order.target_world_space_pos.x = rng.uniform(area.p0.x, area.p1.x)
        order.target_world_space_pos.y = rng.uniform(area.p0.y, area.p1.y)
        bursts.append(
            frames([requests.action([action]), requests.step(step_mul), requests.observation()])
        )
    return bursts


async def connect(port: int) -> Wire:
    """Connect as soon as the game answers."""
    until_s = time.monotonic() + READY_WITHIN_S
    while True:
        try:
            _, wire = await picows.ws_connect(
                Wire, f"ws://{HOST}:{port}/sc2api", max_frame_size=1 << 28
            )
        except (picows.WSError, OSError):
            if time.monotonic() > until_s:
                raise
            await asyncio.sleep(0.02)
        else:
            return wire


async def serve(root: str, map_name: str) -> None:
    """Launch a game and obey the commands on stdin until stdin is closed."""
    from bench.tasks import task_on  # noqa: PLC0415

    task = task_on(map_name)
    setup = task.game_setup()
    installation = read_installation(Path(root), "the benchmark's")
    lease = PortLease.acquire()
    process = GameProcess.spawn(installation, lease)
    try:
        wire = await connect(lease.port)
        map_path = find_map(installation, map_name)
        bursts: list[bytes] = []
        loop = 0
        for what, *arguments in child.questions():
            answer: Any = "ready"
            if what == "run":
                answer = await wire.run(bursts, *arguments)
                loop += answer[0] * task.step_mul
                observed = (await wire.ask(requests.observation())).observation.observation
                assert observed.game_loop == loop, f"loop {observed.game_loop}, not {loop}"
            else:
                # A game ends after 2^19 loops, and a restart does not reset this count.
                for request in (
                    requests.create_game(setup, map_path, None),
                    requests.join_game(setup),
                ):
                    reply = await wire.ask(request)
                    assert not reply.error, reply
                area = (await wire.ask(requests.game_info())).game_info.start_raw.playable_area
                observed = (await wire.ask(requests.observation())).observation.observation
                loop = observed.game_loop
                bursts = random_walks(observed, area, task.step_mul)
            child.answer(answer)
    finally:
        process.close()
        lease.release()


def main(arguments: list[str]) -> NoReturn:
    """Run one of the n processes, each of which plays one game."""
    run_in_selector_loop(serve(*arguments))
    sys.exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
