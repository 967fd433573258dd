"""`Task`: a task written straight on the protobuf observation, the fast way.

    class Greedy(Task):
        map_name = "MoveToBeacon"
        observation_space = spaces.Box(-1, 1, (2,), np.float32)
        action_space = spaces.Discrete(8)

        def act(self, action):        # action -> commands
            return [commands.move(tags, (x, y))]

        def observe(self):            # self.lazy_observation -> observation
            return np.array(...)

Rules: a new object per episode; every hook may be `async`; hooks read the newest observation:
`self.lazy_observation` decodes only the parts that are read, `self.observation` the whole message.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.commands import Commands
from sc2pool.protocol.observed import Observed
from sc2pool.tasks.definition import TaskDefinition

if TYPE_CHECKING:
    from sc2pool.game.game import Game


class Task(TaskDefinition):
    """One episode of a task.

    Attributes:
        lazy_observation: the game's newest observation, which decodes only the parts that are
            read; the fastest input of `sc2pool.units.select`.
        game_info: the map's description, a `sc2api_pb2.ResponseGameInfo`, fetched once per game.
        action_results: the `ActionResult` values the game gave to the last step's commands.
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
        """The newest observation, as a whole; decoding it costs some 20 µs, once per step.

        It can be set, to test a task without a game.
        """
        return self.lazy_observation.observation

    @observation.setter
    def observation(self, message: sc_pb.Observation) -> None:
        self.lazy_observation = Observed.of(sc_pb.ResponseObservation(observation=message))

    def on_start(self) -> Awaitable[None] | None:
        """Called once, with the first observation of the episode."""
        return None

    def result(self) -> int | None:
        """How an episode came out for this side of a match, a `sc2api_pb2.Result`.

        Called at the episode's end; it becomes `sc2pool.result`. By default the game's own result;
        None, which is undecided, if the game goes on.
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
            The unit commands of this step; None, like an empty list, for no command. Anything else
            is raised in the trainer, as `UserCodeError`; so is an exception.
        """
