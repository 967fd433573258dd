"""`Task`: a task written straight on the protobuf observation, the fast way.

    class Greedy(Task):
        map_name = "MoveToBeacon"
        observation_space = spaces.Box(-1, 1, (2,), np.float32)
        action_space = spaces.Discrete(8)

        def act(self, action):        # action -> commands
            return [commands.move(tags, (x, y))]

        def observe(self):            # self.lazy_observation -> what the learner sees
            return np.array(...)

Rules: a new object per episode; every hook may be `async`; a hook sees the newest observation, in
`self.lazy_observation` decoded as far as it is asked for, in `self.observation` the whole message.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.protocol.observed import Observed
from sc2pool.tasks.commands import Commands
from sc2pool.tasks.definition import TaskDefinition

if TYPE_CHECKING:
    from sc2pool.game.game import Game


class Task(TaskDefinition):
    """One episode of a task.

    Attributes:
        lazy_observation: the game's newest observation, decoded as far as it is asked for; what
            `sc2pool.tasks.units.select` reads fastest.
        game_info: the map's description, a `sc2api_pb2.ResponseGameInfo`, fetched once a game.
        action_results: the `ActionResult` values the game gave to the last step's commands.
        game: the running game, for queries and debug requests (`await self.game.request(…)`).
    """

    lazy_observation: Observed
    game_info: sc_pb.ResponseGameInfo
    game: Game
    action_results: tuple[int, ...] = ()

    @property
    def response(self) -> sc_pb.ResponseObservation:
        """The whole reply the newest observation came in: chat, action errors, results."""
        return self.lazy_observation.response

    @property
    def observation(self) -> sc_pb.Observation:
        """The newest observation, all of it; decoding it costs some 20 µs, once per step.

        It may be set, to try a task out without a game.
        """
        return self.lazy_observation.observation

    @observation.setter
    def observation(self, message: sc_pb.Observation) -> None:
        self.lazy_observation = Observed.of(sc_pb.ResponseObservation(observation=message))

    def on_start(self) -> Awaitable[None] | None:
        """Called once, when the first observation of the episode is there."""
        return None

    def _seen(self) -> tuple[sc_pb.ResponseGameInfo, sc_pb.Observation]:
        """The map's description and the newest observation, as the game sent them."""
        return self.game_info, self.observation

    @abstractmethod
    def act(self, action: Any) -> Commands | Awaitable[Commands | None] | None:
        """Turn an action of the action space into unit commands (see `sc2pool.tasks.commands`).

        May be `async`.

        Returns:
            The unit commands of this step; None, like an empty list, for no command. Anything else
            is raised in the trainer, as `UserCodeError`; so is an exception.
        """
