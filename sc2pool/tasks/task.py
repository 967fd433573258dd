"""`Task` and `TeamTask`, the base classes of tasks; `RLBotAI` shares their base `TaskDefinition`.

A definition has a task's attributes, such as its map and its spaces. A `Task` reads the game's
protobuf observation directly, which is fast:

    class Greedy(Task):
        map_name = "MoveToBeacon"
        observation_space = spaces.Box(-1, 1, (2,), np.float32)
        action_space = spaces.Discrete(8)

        def act(self, action):        # action -> commands
            return [commands.move(tags, (x, y))]

        def observe(self):            # self.lazy_observation -> observation
            return np.array(...)

Rules: a definition consists of class attributes, because it is read before a game is launched. Each
episode has a new object. Every hook (a method that the pool calls) may be `async`. Hooks read the
newest observation: `self.lazy_observation` decodes only the parts that are read, and
`self.observation` decodes the whole message.

The agents of a `TeamTask` act together in one game:

    class Pair(TeamTask):
        map_name = "MyMap"
        agents = ("marine_0", "marine_1")
        observation_space = spaces.Box(-1, 1, (9,), np.float32)    # of one agent
        action_space = spaces.Discrete(5)                          # of one agent

        def act(self, actions):     # one action per agent -> commands
            return [...]

        def observe(self):          # one observation per agent, as an array or a list
            return np.array([...])

Rules of teams: actions, observations and masks are in the order of `agents`. The agents share the
reward, the info and the end of the episode. An agent whose unit is dead continues acting, without
effect, until the episode ends. With `players = 2` each side of a match is a team with its own task
object.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from enum import Enum
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

from gymnasium import spaces
from s2clientprotocol import common_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.commands import Commands
from sc2pool.config import Computer, GameSetup, race_number
from sc2pool.errors import ConfigError, UserCodeError
from sc2pool.foreign import printable
from sc2pool.optional import needed_for
from sc2pool.protocol import LOOPS_PER_S
from sc2pool.protocol.observed import Observed

if TYPE_CHECKING:
    from sc2pool.game.game import Game
    from sc2pool.tasks.player import Episode


class TaskDefinition(ABC):
    """The class attributes of a task.

    Attributes:
        map_name: file name of the map without suffix, or a path to a `.SC2Map` file.
        observation_space: the space of the values that `observe()` returns.
        action_space: the space of the actions that `act()` takes.
        step_mul: game loops per env step. (22.4 loops are one second of real time.) A pool may
            override `step_mul` and `max_loops`; the task's attributes then have the pool's values.
        max_loops: an episode of this many game loops is truncated. None for no limit.
        race_requested: the learner's race, a `common_pb2.Race` value or python-sc2's `Race`.
        players: the number of players, 1 or 2. With 2 players, each env is a match: two games that
            play each other. Each side has its own object of this class.
        opponents: built-in opponents of a task for one player. The mini-games have none, because
            their enemies belong to the map.
        disable_fog: whether the learner sees the whole map.
        restart: "auto" begins an episode by restart_game if this request is proven to restore
            everything. "never" creates a game for each episode, which takes longer.
        metadata: as in `gymnasium.Env`. Without `render_fps`, frames are shown in real time.
        render_mode: one of the metadata's `render_modes`, or None.

    A task may have a method `action_masks()`, which returns the actions that are possible now: a
    bool array of shape (n,) for `Discrete(n)`, (sum(nvec),) for `MultiDiscrete(nvec)`, as
    sb3-contrib's MaskablePPO expects it, or None if every action is possible. This class does not
    define the method, because only a task with masks has it.
    """

    map_name: ClassVar[str]
    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]
    step_mul: ClassVar[int] = 8
    max_loops: ClassVar[int | None] = None
    race_requested: ClassVar[int | Enum] = common_pb2.Terran
    players: ClassVar[int] = 1
    opponents: ClassVar[tuple[Computer, ...]] = ()
    disable_fog: ClassVar[bool] = False
    restart: ClassVar[str] = "auto"
    metadata: Mapping[str, Any] = {"render_modes": ["human", "rgb_array"]}
    render_mode: str | None = None
    max_episode_steps: int | None = None
    """An episode of this many env steps is truncated; `SC2VectorEnv` sets it."""

    episode: Episode
    """The running episode: its number in the run, and its seed."""
    game_version: str = ""
    """The game's version; empty before the task is played."""
    last_action: Any = None
    """The action before the newest observation; None before the episode's first action."""
    delay_s: float = 0.0
    """In real time, the seconds from an observation to the action chosen for it; else 0."""
    options: Mapping[str, Any]
    """The options of this episode's reset; empty if there were none."""

    score_change: float = 0.0
    """The change of the game's score in the last step; 0 at the episode's start."""

    @abstractmethod
    def observe(self) -> Any:
        """Return the learner's observation. May be `async`.

        Returns:
            An element of the observation space, of its shape and dtype, without NaN. In the
            trainer, other values raise `ObservationError`, and exceptions raise `UserCodeError`.
        """

    def reward(self) -> float | Awaitable[float]:
        """Return the reward of the last step; by default the change of the game's score."""
        return self.score_change

    def terminated(self) -> bool | Awaitable[bool]:
        """True if the task ends the episode now. (The end of the game always ends the episode.)"""
        return False

    def info(self) -> dict[str, Any] | Awaitable[dict[str, Any]]:
        """Return further facts about this step, for the `info` dict; by default none.

        Keys that begin with `sc2pool.` are the pool's; such a key raises `UserCodeError`.
        """
        return {}

    def render(self) -> Any:
        """Draw a frame of the game as it is now; see `sc2pool.render.frame.draw`.

        Returns:
            uint8, (480, 640, 3). A task's own `render` may return another shape, which must be the
            same for every frame.

        Raises:
            MissingPackageError: the package Pillow is not installed.
        """
        with needed_for("render()"):  # only a rendered task needs Pillow
            from sc2pool.render.frame import draw  # noqa: PLC0415

        game_info, observation = self._seen()
        figures: dict[str, object] = {}
        if self.game_version:  # empty under python-sc2's own `run_game`
            figures = {"episode": self.episode.number, "game": self.game_version}
        return draw(
            game_info,
            observation,
            title=type(self).__name__,
            max_loops=self.max_loops,
            figures=figures,
        )

    def _seen(self) -> tuple[sc_pb.ResponseGameInfo, sc_pb.Observation]:
        """The map's description and the newest observation, as the game sent them."""
        raise NotImplementedError

    @classmethod
    def check_values(cls) -> None:
        """Check the values of the class attributes; subclasses with more attributes add checks.

        Raises:
            ConfigError: a value is wrong.
        """
        check_loops("step_mul", cls.step_mul)
        if cls.max_loops is not None:
            check_loops("max_loops", cls.max_loops)
        if cls.restart not in ("auto", "never"):
            raise ConfigError(f"restart must be 'auto' or 'never', got {cls.restart!r}")
        modes = cls.metadata.get("render_modes", ())
        if not isinstance(modes, list | tuple):
            raise ConfigError(f"metadata['render_modes'] must be a list of names, got {modes!r}")
        cls.game_setup()

    @classmethod
    def game_setup(cls) -> GameSetup:
        """The map, players and options of the task's game.

        Raises:
            ConfigError: `race_requested` is not a race, `opponents` are not `Computer`s, `players`
                is neither 1 nor 2, or a task of two players has `opponents`.
        """
        opponents = cls.opponents
        if type(cls.players) is not int or cls.players not in (1, 2):
            raise ConfigError(f"players must be 1 or 2, got {cls.players!r}")
        if not (
            isinstance(opponents, list | tuple)
            and all(isinstance(opponent, Computer) for opponent in opponents)
        ):
            raise ConfigError(
                f"opponents must be a tuple of sc2pool.config.Computer, got {opponents!r}"
            )
        if cls.players > 1 and opponents:
            raise ConfigError(
                f"a task of two players has no opponents of its own, got {opponents!r}; the env's "
                f"opponent may be a Computer"
            )
        return GameSetup(
            map_name=cls.map_name,
            race=race_number(cls.race_requested),
            opponents=tuple(opponents),
            disable_fog=cls.disable_fog,
            participants=cls.players,
            restart=cls.restart,
        )


_LOOKS_PER_LOOP = 20
"""In real time, `advance` fails if it needs more than this many observation requests per loop."""


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
        """The game's whole reply: the newest observation, chat, action errors and results."""
        return self.lazy_observation.response

    @property
    def observation(self) -> sc_pb.Observation:
        """The whole newest observation; it is decoded once per step, which costs about 20 µs.

        To test a task without a game, set this attribute.
        """
        return self.lazy_observation.observation

    @observation.setter
    def observation(self, message: sc_pb.Observation) -> None:
        self.lazy_observation = Observed.of(sc_pb.ResponseObservation(observation=message))

    def on_start(self) -> Awaitable[None] | None:
        """Called once per episode, when its first observation is there."""
        return None

    async def advance(self, loops: int = 2) -> None:
        """Play game loops in `on_start`; the episode's first observation comes after these loops.

        Use `advance` after debug commands: an observation shows a created, killed or changed unit
        only two loops later. The episode's time limit is counted from the end of these loops.

        Args:
            loops: at least 1. In real time, the game plays the loops by itself.

        Raises:
            ConfigError: the value of `loops` is not a whole number of at least 1.
            UserCodeError: the task has two players, whose games must step together, or the game
                does not continue, for instance because it has ended.
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
            self.max_loops += loops  # type: ignore[misc]  # changes only this episode's object

    def result(self) -> int | None:
        """The episode's result for this side of a match, a `sc2api_pb2.Result`.

        Called at the episode's end; the value becomes `sc2pool.result`. By default it is the game's
        own result, or None (undecided) if the game continues.
        """
        return self.game.result

    def _seen(self) -> tuple[sc_pb.ResponseGameInfo, sc_pb.Observation]:
        return self.game_info, self.observation

    @abstractmethod
    def act(self, action: Any) -> Commands | Awaitable[Commands | None] | None:
        """Turn an action of the action space into unit commands (see `sc2pool.commands`).

        May be `async`.

        Returns:
            The unit commands of this step; None or an empty list for no command. Any other value,
            or an exception, raises `UserCodeError` in the trainer.
        """


class TeamTask(Task):
    """One episode of a team's task.

    Attributes:
        agents: the agents' names, all different. An env has a row for each agent. In a match of two
            learning teams, the first player's rows come before the second's.
        observation_space: the observation space of one agent.
        action_space: the action space of one agent.
        state_space: the space of `state()`. None if the task has no state.
        shares_state: whether each row's observation also contains the state, for a critic that sees
            the whole battle. The observation is then a dict of "observation" and "state".
        last_action: the actions before the newest observation, one for each agent. None before the
            episode's first action.

    `action_masks()`, if the task has it, returns one mask per agent, as an array or a list.
    """

    agents: ClassVar[tuple[str, ...]] = ()
    state_space: ClassVar[spaces.Space[Any] | None] = None
    shares_state: ClassVar[bool] = False

    @abstractmethod
    def act(self, action: Sequence[Any]) -> Commands | Awaitable[Commands | None] | None:
        """Turn one action per agent into unit commands."""

    @abstractmethod
    def observe(self) -> Any:
        """Return one observation per agent, each an element of the observation space.

        May be `async`.
        """

    def state(self) -> Any:
        """Return the state of the whole battle now, an element of the state space."""
        raise NotImplementedError(f"{type(self).__name__} has no state")

    @classmethod
    def check_values(cls) -> None:
        """Check the base class's values, the agents' names, and the space of a shared state."""
        super().check_values()
        agents: object = cls.agents
        if (
            not isinstance(agents, tuple)
            or not agents
            or not all(isinstance(name, str) and name for name in agents)
            or len(set(agents)) < len(agents)
        ):
            raise ConfigError(
                f"agents must be a tuple of at least one name, all different, got {agents!r}"
            )
        if not isinstance(cls.state_space, spaces.Space | None):
            raise ConfigError(f"state_space must be a Space or None, got {cls.state_space!r}")
        if cls.shares_state and cls.state_space is None:
            raise ConfigError("shares_state is True, but the task has no state_space")


def agents_of(task: type[TaskDefinition]) -> int:
    """The number of agents that each learning player of a task has."""
    return len(task.agents) if issubclass(task, TeamTask) else 1


def row_space(task: type[TaskDefinition]) -> spaces.Space[Any]:
    """The observation space of one row (one player or agent) of a task's env."""
    if not issubclass(task, TeamTask) or not task.shares_state:
        return task.observation_space
    assert task.state_space is not None, "checked with the definition"
    return spaces.Dict({"observation": task.observation_space, "state": task.state_space})


def check_definition(cls: type[TaskDefinition]) -> None:
    """Check the class attributes before any game starts; ConfigError if one is missing or wrong."""
    for name, kind in (
        ("map_name", str),
        ("observation_space", spaces.Space),
        ("action_space", spaces.Space),
        ("disable_fog", bool),
        ("metadata", Mapping),
    ):
        value = getattr(cls, name, None)
        if not isinstance(value, kind):
            raise ConfigError(
                f"task {cls.__name__}: class attribute {name!r} must be a {kind.__name__}, "
                f"got {value!r}"
            )
    masks = getattr(cls, "action_masks", None)
    if masks is not None and not callable(masks):
        raise ConfigError(f"task {cls.__name__}: action_masks must be a method, got {masks!r}")
    missing = ", ".join(sorted(f"{hook}()" for hook in cls.__abstractmethods__))
    if missing:
        raise ConfigError(f"task {cls.__name__} must define {missing}")
    try:
        cls.check_values()
    except ConfigError as error:
        raise ConfigError(f"task {cls.__name__}: {error}") from None


def check_loops(name: str, loops: object) -> None:
    """Check a number of game loops; ConfigError if it is not a whole number of at least 1."""
    if isinstance(loops, bool) or not isinstance(loops, Integral) or loops < 1:
        raise ConfigError(f"{name} must be a whole number of at least 1, got {loops!r}")
