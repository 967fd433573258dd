"""`RLBotAI`, a task written as a python-sc2 bot, and `PolicyBot`, a bot that plays a policy.

    class Walker(RLBotAI):
        map_name = "MoveToBeacon"
        observation_space = spaces.Box(-1, 1, (2,), np.float32)
        action_space = spaces.Discrete(8)

        def act(self, action): ...
        def observe(self): ...

The user of `RLBotAI` writes `act`, `observe` and `reward`, and can use all of BotAI. sc2pool
defines `on_step`, which puts a transition on the queue pair and gets the next action. For each
step, python-sc2 calls `on_step`, and the learner, in another process or thread, calls `env.step()`.
Neither `on_step` nor `env.step()` blocks the other's thread. Rules: each episode has a new bot
object. Every hook may be `async`. No attribute of `RLBotAI` has the name of an attribute of BotAI.
The same class plays in the pool and, with `QueuePair.local()` or a policy, under python-sc2's
`run_game`.

    run_game(map, [Bot(Race.Terran, PolicyBot(MoveToBeacon, PPO.load("model.zip")))], …)

In `PolicyBot` a task class makes the policy's observations and turns the policy's actions into
commands, as in the pool. A `DrivenTask` calls the hooks of a `Task`. The `PolicyBot` itself calls
the hooks of an `RLBotAI`. Rules: each game has a new task object. The hooks are called in the
pool's order, at the same game loops, so the same game and the same policy give the same actions.
A `Task` can send requests to the game with `await self.game.request(…)`. Neither SB3 nor torch is
imported: a policy is any object with SB3's `predict`.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from s2clientprotocol import sc2api_pb2 as sc_pb
from sc2.bot_ai import BotAI
from sc2.client import Client
from sc2.data import Result
from sc2.game_state import GameState
from sc2.protocol import ConnectionAlreadyClosedError, ProtocolError

from sc2pool.errors import ConfigError
from sc2pool.protocol.observed import Observed
from sc2pool.tasks import registry
from sc2pool.tasks.episode_rules import DrivenTask, EpisodeRules, awaited
from sc2pool.tasks.opponents.policies import Policy, PredictPair
from sc2pool.tasks.player import Episode
from sc2pool.tasks.queue_pair import PolicyPair, QueuePair
from sc2pool.tasks.task import Task, TaskDefinition


class RLBotAI(TaskDefinition, BotAI):
    """A bot whose actions a learner chooses through its queue pair.

    Args:
        queue_pair: the source of actions and target of transitions; a pool passes its own pair.
        policy: a function from an observation to an action, in place of a queue pair. The function
            may be `async`. With a policy, the bot needs no learner.
    """

    def __init__(
        self,
        queue_pair: QueuePair | None = None,
        *,
        policy: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__()
        if queue_pair is None and policy is not None:
            queue_pair = PolicyPair(policy)
        elif queue_pair is None or policy is not None:
            raise ConfigError(f"{type(self).__name__} takes either a queue pair or a policy")
        self.queue_pair = queue_pair
        self.options = {}
        self._rules = EpisodeRules(self)
        self._owns_game = True
        """Whether the bot leaves the game at the episode's end, as it must under `run_game`. The
        pool sets this to False, because it ends the game itself."""

    @property
    def episode_over(self) -> bool:
        """True if the episode's last transition has been made."""
        return self._rules.over

    def _end_episode(self) -> None:
        """Make no further transition, because the other player of the match has ended the
        episode."""
        self._rules.over = True

    @abstractmethod
    def act(self, action: Any) -> Awaitable[None] | None:
        """Give the orders for `action` with python-sc2's methods (`unit.move(…)`, `self.do`).

        The orders are sent together with the step, and the game's reply to them is not returned.
        The return value of `act` is ignored.
        """

    async def on_step(self, iteration: int) -> None:  # noqa: ARG002
        """Put the newest state's transition on the queue pair, and take the next action from it."""
        self.client.game_step = self.step_mul  # python-sc2 plays this many game loops next
        observed_s = time.monotonic()
        await self._put(game_ended=False)
        if self.episode_over:
            if self._owns_game:
                await self.client.leave()
        else:
            action = await self.queue_pair.get_action()
            await awaited(self.act(action))
            self.last_action = action
            self.client.game_step = self.step_mul  # `act` may have set another number of loops
            if self.realtime:  # the pool's player later sets a more exact delay
                self.delay_s = time.monotonic() - observed_s

    async def on_end(self, game_result: Result) -> None:  # noqa: ARG002
        """Put the episode's last transition, made from the game's final state.

        If the task has ended the episode, the last transition is already on the queue pair. For an
        episode that the task has ended, `game_result` is a tie in the pool, and a defeat under
        `run_game`.
        """
        if self.episode_over:
            return
        with suppress(ProtocolError, ConnectionAlreadyClosedError):
            # python-sc2 ends the game without the last observation, so request it here.
            # `client.observation` would wait for a second report of the result, which never comes.
            response = await self.client._execute(observation=sc_pb.RequestObservation())
            state = GameState(response.observation)
            if state.game_loop > self.state.game_loop:
                self._prepare_step(state, sc_pb.Response(game_info=self.game_info._proto))
        await self._put(game_ended=True)

    def _seen(self) -> tuple[sc_pb.ResponseGameInfo, sc_pb.Observation]:
        return self.game_info._proto, self.state.observation

    async def _put(self, *, game_ended: bool) -> None:
        state = self.state
        self.queue_pair.put(
            await self._rules.transition(state.game_loop, state.score.score, game_ended=game_ended)
        )


class PolicyBot(BotAI):
    """A bot that plays a policy, under `run_game` or in a package for a competition.

    Wrappers around the env (VecNormalize, VecFrameStack) are not applied here, so pass a policy
    whose `predict` applies them.

    Args:
        task: a built-in task's name, or a subclass of `Task` or `RLBotAI`. `run_game` chooses the
            map, race and opponents.
        policy: a trained SB3 model, or another object with SB3's `predict`.
        deterministic: whether the policy takes its best action instead of drawing one.

    Attributes:
        game_version: the game's version; empty before the first game.

    Raises:
        ConfigError: the task is unknown, or the policy is for another action space.
    """

    def __init__(
        self, task: str | type[TaskDefinition], policy: Policy, *, deterministic: bool = True
    ) -> None:
        super().__init__()
        self._definition = registry.resolve_task(task)
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
        """The number of actions that were taken in this game."""
        return self._pair.steps

    @property
    def episode_return(self) -> float:
        """The sum of the task's rewards in this game."""
        return self._pair.episode_return

    async def on_before_start(self) -> None:
        """Make the task object for the game that begins."""
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
            if iteration:  # the bot is already prepared for step 0
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
        """Prepare the `RLBotAI` just as python-sc2 has prepared this bot."""
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


class TaskEpisode:
    """Drives one task object through one game of python-sc2."""

    def __init__(
        self,
        task: Task,
        pair: QueuePair,
        client: Client,
        game_info: sc_pb.ResponseGameInfo,
        *,
        realtime: bool,
    ) -> None:
        self._task = task
        self._pair = pair
        self._client = client
        self._realtime = realtime
        self._game_info = game_info
        self._driven = DrivenTask(task)

    async def start(self, state: GameState) -> None:
        """Take the first observation and call the task's `on_start`."""
        observed = Observed.of(state.response_observation)
        game = ClientGame(self._client, realtime=self._realtime)
        await self._driven.begin(game, observed, self._game_info)

    async def step(self, state: GameState) -> None:
        """Put the new state's transition; then act or, if the episode is over, leave the game."""
        self._client.game_step = self._task.step_mul  # python-sc2 plays this many game loops next
        observed_s = time.monotonic()
        await self._put(Observed.of(state.response_observation), game_ended=False)
        if self._driven.rules.over:
            await self._client.leave()
            return
        commands = await self._driven.turn(await self._pair.get_action())
        if self._realtime:
            self._task.delay_s = time.monotonic() - observed_s
        self._task.action_results = ()
        if commands:
            try:
                reply = await self._client._execute(action=sc_pb.RequestAction(actions=commands))
            except ProtocolError as error:
                if not error.is_game_over_error:  # in real time the game may end at any moment
                    raise
            else:
                self._task.action_results = tuple(reply.action.result)

    async def end(self) -> None:
        """Put the episode's last transition, made from the game's final state."""
        if self._driven.rules.over or not self._driven.rules.begun:
            return
        observed = self._task.lazy_observation
        # python-sc2 ends the game without the last observation, so request it here.
        # `client.observation` would wait for a second report of the result, which never comes.
        with suppress(ProtocolError, ConnectionAlreadyClosedError):
            response = await self._client._execute(observation=sc_pb.RequestObservation())
            observed = Observed.of(response.observation)
        await self._put(observed, game_ended=True)

    async def _put(self, observed: Observed, *, game_ended: bool) -> None:
        self._pair.put(await self._driven.transition(observed, game_ended=game_ended))


class ClientGame:
    """The object that a task has as its `game` if python-sc2 runs the game."""

    def __init__(self, client: Client, *, realtime: bool) -> None:
        self._client = client
        self.realtime = realtime

    @property
    def result(self) -> int | None:
        """The bot's `Result`; None until the game has ended with a result."""
        results = self._client._game_result or {}
        result = results.get(self._client._player_id)
        return None if result is None else int(result.value)

    async def request(self, request: sc_pb.Request) -> sc_pb.Response:
        """Send a request as `Game.request` does: if the game refuses it, the reply has `error`."""
        kind = str(request.WhichOneof("request"))
        try:
            return await self._client._execute(**{kind: getattr(request, kind)})
        except ProtocolError as error:
            return sc_pb.Response(error=[str(error)])
