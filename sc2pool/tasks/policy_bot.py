"""`PolicyBot`: a trained policy as an ordinary python-sc2 bot.

    run_game(map, [Bot(Race.Terran, PolicyBot(MoveToBeacon, PPO.load("model.zip")))], …)

The task class that the policy was trained on turns observations and actions into the policy's and
back, as in the pool; `players/task_episode.py` drives a `Task`, this file an `RLBotAI`. Rules: a
new task object per game; the hooks are called in the pool's order, so the same game and the same
policy give the same actions; neither SB3 nor torch is imported: a policy is any object with SB3's
`predict`.
"""

from __future__ import annotations

from s2clientprotocol import sc2api_pb2 as sc_pb
from sc2.bot_ai import BotAI
from sc2.data import Result

from sc2pool.errors import ConfigError
from sc2pool.tasks import registry
from sc2pool.tasks.bot import RLBotAI
from sc2pool.tasks.definition import TaskDefinition
from sc2pool.tasks.opponents.policies import Policy, PredictPair
from sc2pool.tasks.player import Episode
from sc2pool.tasks.players.task_episode import TaskEpisode
from sc2pool.tasks.task import Task


class PolicyBot(BotAI):
    """Plays a policy; for `run_game`, and for the packages that ladders want.

    Wrappers around the env (VecNormalize, VecFrameStack) are not applied here: pass a policy whose
    `predict` applies them.

    Args:
        task: a built-in task's name, or a subclass of `Task` or `RLBotAI`. Its map, race and
            opponents are not used: `run_game` chooses them.
        policy: a trained SB3 model, or another object with its `predict`.
        deterministic: whether the policy returns its best action instead of a random one.

    Attributes:
        game_version: the game's version; empty before the first game.

    Raises:
        ConfigError: no such task, or a policy for another action space.
    """

    def __init__(
        self, task: str | type[TaskDefinition], policy: Policy, *, deterministic: bool = True
    ) -> None:
        super().__init__()
        self._definition = registry.resolve(task)
        self._policy = policy
        self._deterministic = deterministic
        self._pair = PredictPair(policy, self._definition.action_space, deterministic)
        self._games = 0
        self.game_version = ""
        self._episode: TaskEpisode | None = None
        self._bot: RLBotAI | None = None
        space, wanted = getattr(policy, "action_space", None), self._definition.action_space
        if space is not None and space != wanted:
            raise ConfigError(
                f"the policy acts in {space}, the task {self._definition.__name__} in {wanted}"
            )

    @property
    def steps(self) -> int:
        """Actions taken in this game."""
        return self._pair.steps

    @property
    def episode_return(self) -> float:
        """The sum of the task's rewards in this game."""
        return self._pair.episode_return

    async def on_before_start(self) -> None:
        """Make the task object of the game that begins."""
        definition = self._definition
        self._pair = PredictPair(self._policy, definition.action_space, self._deterministic)
        self._episode = self._bot = None
        if issubclass(definition, RLBotAI):
            self._bot = definition(self._pair)
            started: TaskDefinition = self._bot
        else:
            task = definition()
            assert isinstance(task, Task), "a definition is one or the other"
            self._episode = TaskEpisode(
                task, self._pair, self.client, self.game_info._proto, realtime=self.realtime
            )
            started = task
        started.episode = Episode(self._games)
        started.options = {}
        pong = await self.client._execute(ping=sc_pb.RequestPing())
        started.game_version = self.game_version = pong.ping.game_version
        self._games += 1
        if self._bot is not None:
            self._prepare_bot(self._bot)
            await self._bot.on_before_start()

    async def on_start(self) -> None:
        if self._episode is not None:
            await self._episode.start(self.state)
        elif self._bot is not None:
            self._bot._prepare_first_step()
            await self._bot.on_start()

    async def on_step(self, iteration: int) -> None:
        if self._episode is not None:
            await self._episode.step(self.state)
        elif self._bot is not None:
            if iteration:  # the first was prepared for `on_start`
                self._bot._prepare_step(self.state, self._map())
            await self._bot.issue_events()
            await self._bot.on_step(iteration)
            await self._bot._after_step()

    async def on_end(self, game_result: Result) -> None:
        if self._episode is not None:
            await self._episode.end()
        elif self._bot is not None:
            await self._bot.on_end(game_result)

    def _prepare_bot(self, bot: RLBotAI) -> None:
        """Prepare the `RLBotAI` as python-sc2 has prepared this bot."""
        bot._initialize_variables()
        bot._prepare_start(
            self.client,
            self.player_id,
            self.game_info,
            self.game_data,
            realtime=self.realtime,
            base_build=self.base_build,
        )
        bot._prepare_step(self.state, self._map())

    def _map(self) -> sc_pb.Response:
        return sc_pb.Response(game_info=self.game_info._proto)
