"""`Task`: a task written directly on the protobuf observation, which is the fast way.

    class Greedy(Task):
        map_name = "MoveToBeacon"
        observation_space = spaces.Box(-1, 1, (2,), np.float32)
        action_space = spaces.Discrete(8)

        def act(self, action):        # action -> commands
            return [commands.move(tags, (x, y))]

        def observe(self):            # self.lazy_observation -> observation
            return np.array(...)

Rules: each episode has a new object. Every hook may be `async`. Hooks read the newest observation:
`self.lazy_observation` decodes only the parts that are read, `self.observation` the whole message.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.commands import Commands
from sc2pool.errors import UserCodeError
from sc2pool.foreign import printable
from sc2pool.protocol import LOOPS_PER_S
from sc2pool.protocol.observed import Observed
from sc2pool.tasks.definition import TaskDefinition, check_loops

if TYPE_CHECKING:
    from sc2pool.game.game import Game

_LOOKS_PER_LOOP = 20
"""How often per game loop `advance` requests an observation in real time before it gives up."""


class Task(TaskDefinition):
    """One episode of a task.

    Attributes:
        lazy_observation: the game's newest observation, which decodes only the parts that are
            read. It is the fastest input of `sc2pool.units.select`.
        game_info: the map's description, a `sc2api_pb2.ResponseGameInfo`, fetched once per game.
        action_results: the game's `ActionResult` values for the last step's commands.
        game: the running game, for queries and debug requests (`await self.game.request(…)`).
    """

    lazy_observation: Observed
    game_info: sc_pb.ResponseGameInfo
    game: Game
    action_results: tuple[int, ...] = ()

    @property
    def response(self) -> sc_pb.ResponseObservation:
        """The whole reply that holds the newest observation: chat, action errors, results."""
        return self.lazy_observation.response

    @property
    def observation(self) -> sc_pb.Observation:
        """The whole newest observation; decoding it costs some 20 µs, once per step.

        Set it to test a task without a game.
        """
        return self.lazy_observation.observation

    @observation.setter
    def observation(self, message: sc_pb.Observation) -> None:
        self.lazy_observation = Observed.of(sc_pb.ResponseObservation(observation=message))

    def on_start(self) -> Awaitable[None] | None:
        """Called once, with the first observation of the episode."""
        return None

    async def advance(self, loops: int = 2) -> None:
        """Play game loops in `on_start`; the observation after them is the episode's first one.

        Use it after debug commands: an observation shows a created, killed or changed unit only two
        loops later. The time limit begins after these loops.

        Args:
            loops: at least 1. In real time the game plays them by itself.

        Raises:
            ConfigError: `loops` is not a whole number of at least 1.
            UserCodeError: the task has two players, whose games step together, or the game does not
                continue, for instance because it has ended.
        """
        check_loops("loops", loops)
        until = self.lazy_observation.game_loop + loops
        if not self.game.realtime:
            await self.game.request(sc_pb.Request(step=sc_pb.RequestStep(count=loops)))
        for _ in range(_LOOKS_PER_LOOP * (loops + 1)):
            reply = await self.game.request(sc_pb.Request(observation=sc_pb.RequestObservation()))
            if reply.HasField("observation"):
                self.lazy_observation = Observed.of(reply.observation)
            if self.lazy_observation.game_loop >= until:
                break
            await asyncio.sleep(1 / LOOPS_PER_S)
        else:
            words = ", ".join(reply.error) or f"it is at loop {self.lazy_observation.game_loop}"
            raise UserCodeError(f"the game does not reach loop {until}: {printable(words)}")
        if self.max_loops is not None:
            self.max_loops += loops  # type: ignore[misc]  # only of this episode's object

    def result(self) -> int | None:
        """The episode's result for this side of a match, a `sc2api_pb2.Result`.

        Called at the episode's end; the value becomes `sc2pool.result`. By default it is the game's
        own result, or None (undecided) if the game continues.
        """
        return self.game.result

    def _seen(self) -> tuple[sc_pb.ResponseGameInfo, sc_pb.Observation]:
        """The map's description and the newest observation, as the game sent them."""
        return self.game_info, self.observation

    @abstractmethod
    def act(self, action: Any) -> Commands | Awaitable[Commands | None] | None:
        """Turn an action of the action space into unit commands (see `sc2pool.commands`).

        May be `async`.

        Returns:
            The unit commands of this step; None or an empty list for no command. Any other value,
            or an exception, raises `UserCodeError` in the trainer.
        """
