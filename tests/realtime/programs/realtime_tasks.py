"""Tasks for the tests in `tests/realtime`, in a module that workers import like a user's own."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import gymnasium
import psutil
from gymnasium import spaces
from s2clientprotocol import debug_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.tasks.in_flight import ActionInFlight
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from sc2pool.units import Kind, select

GENERATIONS = """
import subprocess, sys, time
depth = int(sys.argv[1])
if depth:
    subprocess.Popen([sys.executable, "-S", "-c", sys.argv[2], str(depth - 1), sys.argv[2]])
else:
    print("all there", flush=True)
time.sleep(600)
"""


def start_family(generations: int, **options: Any) -> subprocess.Popen[bytes]:
    """Start a program with `generations` generations of child processes, and wait until all run."""
    command = [sys.executable, "-S", "-c", GENERATIONS, str(generations), GENERATIONS]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, **options)
    assert started.stdout is not None
    started.stdout.readline()
    return started


class TellsLoop(MoveToBeacon):
    """MoveToBeacon, whose info also has the observed game loop."""

    step_mul = 4
    level = 0

    def info(self) -> dict[str, Any]:
        return {"loop": self.lazy_observation.game_loop, "level": self.level}

    def answer(self) -> int:
        return 42


class Short(TellsLoop):
    """A task whose episodes have two steps."""

    max_loops = 8


class Mortal(TellsLoop):
    """A task whose last action kills the only unit, which ends the game with the score 7."""

    action_space = spaces.Discrete(2)
    DIE, LAST_SCORE = 1, 7

    async def act(self, action: int) -> None:
        if action == self.DIE:
            (own,) = select(self.lazy_observation, Kind("Marine"))
            score = debug_pb2.DebugCommand(score=debug_pb2.DebugSetScore(score=self.LAST_SCORE))
            kill = debug_pb2.DebugCommand(kill_unit=debug_pb2.DebugKillUnit(tag=own.tags))
            await self.game.request(sc_pb.Request(debug=sc_pb.RequestDebug(debug=[score, kill])))


class OneIsSlow(TellsLoop):
    """A task in which the second of two envs takes 1 s to begin an episode."""

    def on_start(self) -> None:
        super().on_start()
        if self.episode.number % 2:
            time.sleep(1.0)


class InFlight(ActionInFlight, TellsLoop):
    """A task that observes its last action, and the delay of this action."""


class Unstoppable(TellsLoop):
    """A task whose game cannot be stopped, because the system refuses the signal."""

    def on_start(self) -> None:
        super().on_start()

        def refuse(process: psutil.Process) -> None:
            raise psutil.AccessDenied(process.pid)

        psutil.Process.suspend = refuse


class WithGrandchildren(gymnasium.Env[int, int]):
    """An env whose game is a process that has a child of its own."""

    action_space = observation_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self._game = start_family(1)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        return action, 0.0, False, False, {}

    def close(self) -> None:
        """Ask the env's game to end. A stopped game does not react."""
        family = [*psutil.Process(self._game.pid).children(), self._game]
        for process in family:
            process.terminate()
        for process in family:
            process.wait()
