"""A task whose observations show where they come from, so that a trainer can check each one.

The stand-in stamps every observation of the map `Audit` with the process, the episode, the game
loop and the checksum of the newest action (see the stand-in's README). The task returns the stamp
as numbers. An action is a number that the trainer uses once. The trainer can compute the checksum
of an action's command, so an observation proves which action it answers.
"""

from __future__ import annotations

import time
import zlib
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from s2clientprotocol import debug_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool import commands
from sc2pool.commands import Commands, as_actions
from sc2pool.protocol import requests
from sc2pool.tasks.task import Task

STEP_MUL = 8
LAST_LOOP = 480
"""The map ends the game at this loop."""
HARMS = ("none", "hang", "crash", "exit", "block")
"""Besides its command, an action can do this harm to the game or to all envs of the worker."""

BLOCKED_S = 3600.0

_BITS = 14
NUMBERS = 1 << 2 * _BITS
"""Number of different actions."""


class Stamp(NamedTuple):
    """The fields that a trainer reads from one observation."""

    instance: int
    """Random number that the game process drew when it started."""
    game_episode: int
    """The number of the episode, counted from the start of the game process."""
    loop: int
    actions: int
    """Number of actions that the game has executed in this episode."""
    checksum: int
    """CRC-32 of the newest action; 0 before the first action."""
    episode: int
    """The number of the episode in the run, as the pool gave it to the worker."""
    tag: int
    """The marine's tag."""

    @classmethod
    def of(cls, observation: NDArray[np.int64]) -> Stamp:
        """The stamp in one env's observation."""
        return cls(*observation.tolist())


class AuditTask(Task):
    """Episodes of 60 steps, each ended by the game.

    The action space is a `Box` of int64: the action's number, and an index in `HARMS`.

    The observation space is a `Box` of int64 with the fields of `Stamp`.
    The reward is the action's number.
    """

    map_name: ClassVar[str] = str(Path(__file__).with_name("Audit.SC2Map"))
    step_mul: ClassVar[int] = STEP_MUL
    action_space = spaces.Box(
        np.zeros(2, np.int64), np.array([NUMBERS - 1, len(HARMS) - 1]), dtype=np.int64
    )
    observation_space = spaces.Box(0, np.iinfo(np.int64).max, (len(Stamp._fields),), np.int64)

    number = 0
    shown: NDArray[np.int64]
    """The stamp of the newest observation."""

    async def act(self, action: NDArray[np.int64]) -> Commands:
        self.number, harm = action.tolist()
        if HARMS[harm] == "block":
            time.sleep(BLOCKED_S)
        elif harm:
            await self.game.request(harm_request(HARMS[harm]))
        return commands_for(self.number, self.tag())

    def tag(self) -> int:
        (marine,) = self.observation.raw_data.units
        return int(marine.tag)

    def observe(self) -> NDArray[np.int64]:
        if self.response.chat:  # no chat: the game is over and shows its last state again
            message = self.response.chat[0].message
            self.shown = stamp_of(message, self.episode.number, self.tag())
        return self.shown

    def reward(self) -> Any:
        return float(self.number)


def harm_request(how: str) -> sc_pb.Request:
    """The request that makes the game hang, crash or exit."""
    test = debug_pb2.DebugTestProcess(test=debug_pb2.DebugTestProcess.Test.Value(how))
    command = debug_pb2.DebugCommand(test_process=test)
    return sc_pb.Request(debug=sc_pb.RequestDebug(debug=[command]))


def stamp_of(message: str, episode: int, tag: int) -> NDArray[np.int64]:
    """An observation, made from the game's chat message."""
    word, *stamp = message.split()
    assert word == "stamp"
    return np.array([*map(int, stamp), episode, tag], np.int64)


def commands_for(number: int, tag: int) -> Commands:
    """An order to walk to the place that encodes this number."""
    column, row = divmod(number, 1 << _BITS)
    return [
        commands.move(
            [tag], (34.0 + 20.0 * column / (1 << _BITS), 38.0 + 20.0 * row / (1 << _BITS))
        )
    ]


def checksum(number: int, tag: int) -> int:
    """The checksum that the game will compute for this action."""
    request = requests.action(as_actions(commands_for(number, tag))).action
    return zlib.crc32(request.SerializeToString(deterministic=True))
