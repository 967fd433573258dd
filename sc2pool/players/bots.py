"""python-sc2's bots on games of the pool.

`DrivenBot` drives any bot on a game of the pool, from its first observation to its last:

    Calls: start ─► turn ─► see ─► turn ─► see … ─► end, or cut.
                    orders  the observation after the step.

`DrivenBot` does the same as `sc2.main._play_game_ai`, in the same order, but the player steps the
game. `DrivenBot` differs from python-sc2's own loop in four ways:
* Actions, step and observation are sent as one burst, in place of four round trips.
* For an `RLBotAI` the map's description, whose pathing grid shows the places of structures, is
  fetched again only if the bot sees other structures than before. A fetch takes a round trip.
* `UnitSorter` sorts the units of an observation into the bot's groups, faster than python-sc2.
* The bot sees the episode's final state.

Rules: `sc2.main` and `SC2Process` are never imported, because they change the process's signals and
logging. A message that python-sc2 cannot read is a fault of the game. But the user's bot is to
blame if python-sc2 can read the same message for a bot that does nothing.

`GameClient` is python-sc2's client on a game of the pool; `docs/python-sc2.md` describes each
method. Rules: the orders of a bot's turn are sent with the step; other requests are sent at once.
The pool begins and ends games, so `leave` surrenders; to join, restart or quit is an error.

    Once: kind of a unit ─► python-sc2 sorts one such unit ─► its groups.
    Every step: each unit ─► its kind ─► the groups.

`BotAI._prepare_units` chooses each unit's groups in each step, although all units of a kind belong
to the same groups. In a `UnitSorter`, python-sc2 chooses once for each kind: it sorts a single unit
for a bot that does nothing. Rules: the groups are python-sc2's own, and its rules are not repeated
here. If the groups may depend on more than the kind, python-sc2 sorts the units itself: for blips,
effects, distances, a bot that overrides the sorting, and a release that reads other fields.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, compress, count, repeat
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, Final

from loguru import logger
from s2clientprotocol import debug_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb
from sc2.action import combine_actions
from sc2.bot_ai import BotAI
from sc2.client import Client
from sc2.data import ActionResult, Race, Result
from sc2.game_data import GameData
from sc2.game_info import GameInfo
from sc2.game_state import GameState
from sc2.pixel_map import PixelMap
from sc2.protocol import ProtocolError
from sc2.unit import Unit
from sc2.unit_command import UnitCommand
from sc2.units import Units

from sc2pool.errors import FaultKind, GameFault, UserCodeError
from sc2pool.game.game import Game, Step
from sc2pool.protocol.observed import Observed
from sc2pool.tasks.bot import RLBotAI
from sc2pool.tasks.queue_pair import QueuePair
from sc2pool.tasks.task import TaskDefinition


def new_bot(definition: type[TaskDefinition], pair: QueuePair) -> RLBotAI:
    """Makes an episode's bot; UserCodeError if its `__init__` does not pass the queue pair on."""
    assert issubclass(definition, RLBotAI), "every other task is a `Task`"
    bot = definition(pair)
    if getattr(bot, "queue_pair", None) is not pair:
        raise UserCodeError(
            f"{definition.__name__}.__init__() must call super().__init__() with the queue pair "
            "that it is given"
        )
    bot._owns_game = False
    return bot


def no_transition(bot: RLBotAI, hook: str) -> UserCodeError:
    """The error for an overridden hook that has put no transition."""
    return UserCodeError(
        f"{type(bot).__name__}.{hook}() put no transition; it must call super().{hook}()"
    )


def unreadable(what: str, error: Exception) -> GameFault:
    """The fault of a game whose message python-sc2 cannot read, such as one that lacks a field."""
    detail = f"python-sc2 cannot read {what}: {type(error).__name__}: {error}"
    return GameFault(FaultKind.BAD_REPLY, detail)


def prepare_step(
    bot: BotAI,
    state: GameState,
    sorter: UnitSorter,
    game_info: sc_pb.ResponseGameInfo | None = None,
) -> None:
    """Call `BotAI._prepare_step`, but compute the distances between all units only on first use.

    `game_info` is None if the map's first description is still valid.
    """
    method, grid = bot.distance_calculation_method, bot.game_info.pathing_grid
    if method in _LAZY_METHODS:
        bot.distance_calculation_method = 0  # the bot's own value is restored after the call
    sorts = sorter.can_sort_for(bot)
    if sorts:
        vars(bot)["_prepare_units"] = partial(sorter.sort, bot, state)  # python-sc2 calls `sort`
    try:
        bot._prepare_step(state, sc_pb.Response(game_info=game_info or _NO_MAP))
    finally:
        if sorts:
            del vars(bot)["_prepare_units"]
        bot.distance_calculation_method = method
        if game_info is None:
            bot.game_info.pathing_grid = grid


def obstacles_of(bot: BotAI) -> frozenset[tuple[int, int]]:
    """Tag and type of each visible unit that blocks the ground for other units."""
    groups = bot.structures, bot.enemy_structures, bot.destructables, bot.resources
    return frozenset((unit.tag, unit._proto.unit_type) for unit in chain.from_iterable(groups))


_LAZY_METHODS = frozenset({2, 3})
"""The numbers of python-sc2's two distance methods that compute a full matrix."""
_NO_MAP = sc_pb.ResponseGameInfo()


class SharedData:
    """Data that python-sc2 is slow to read, kept for all episodes; `of` also sets `sorter`."""

    sorter: UnitSorter

    def __init__(self) -> None:
        self._data: GameData | None = None

    async def of(self, game: Game) -> GameData:
        """Names, costs and attributes of units, requested once; GameFault if the request fails."""
        if self._data is None:
            data = await game.data()
            try:
                self._data = GameData(data)
            except Exception as error:
                raise unreadable("the game's data", error) from error
            self.sorter = UnitSorter(self._data)
        return self._data


class DrivenBot:
    """Drives a bot through an episode that has begun; with `fresh_map`, fetches each step's map."""

    def __init__(
        self,
        bot: BotAI,
        game: Game,
        client: GameClient,
        shared: SharedData,
        *,
        fresh_map: bool = False,
    ) -> None:
        self._bot = bot
        self._game = game
        self._client = client
        self._shared = shared
        self._fresh_map = fresh_map
        self._iteration = 0
        self._has_ended = False
        self._obstacles: frozenset[tuple[int, int]] = frozenset()

    async def start(self, first: Observed, game_info: sc_pb.ResponseGameInfo) -> None:
        """Show the bot the map and the first observation."""
        bot = self._bot
        bot._initialize_variables()  # a bot's `__init__` may not call that of its base class
        self._data = await self._shared.of(self._game)
        self._game_info = game_info
        with self._showing("the map's description"):
            self._prepare_start(bot)
        with self._showing("the first observation", first):
            bot._prepare_step(GameState(first.response), sc_pb.Response(game_info=game_info))
        await bot.on_before_start()
        with self._showing("the first observation", first):
            bot._prepare_first_step()
        await bot.on_start()
        with self._showing("the first observation", first):
            # Prepare the step twice, as python-sc2 does, so that the first units raise no events.
            prepare_step(bot, GameState(first.response), self._shared.sorter, game_info)
        self._obstacles = obstacles_of(bot)

    def _prepare_start(self, bot: BotAI) -> None:
        game = self._game
        bot._prepare_start(
            self._client,
            game.player_id,
            GameInfo(self._game_info),
            self._data,
            realtime=game.realtime,
            base_build=game.base_build,
        )

    @contextmanager
    def _showing(
        self,
        what: str,
        observed: Observed | None = None,
        game_info: sc_pb.ResponseGameInfo | None = None,
    ) -> Iterator[None]:
        """Decide who is to blame if python-sc2 fails to read the message `what` in this block.

        GameFault if python-sc2 cannot read the message even for a bot that does nothing. If
        python-sc2 can read it, the user's bot is to blame, as a note in the exception says.
        `observed` is the message if it is an observation; `game_info` is the map's description if
        it is newer than the first description.
        """
        try:
            yield
        except Exception as error:
            nobody = Nobody()
            try:
                self._prepare_start(nobody)
                if observed is not None:
                    info = sc_pb.Response(game_info=game_info or self._game_info)
                    nobody._prepare_step(GameState(observed.response), info)
                    nobody._prepare_first_step()
            except Exception:
                raise unreadable(what, error) from error
            error.add_note(
                f"python-sc2 raised it while it set attributes of {type(self._bot).__name__}: the "
                "class may use the name of one of BotAI's attributes for something else"
            )
            raise

    async def turn(self) -> list[sc_pb.Action]:
        """Let the bot act, and return its orders."""
        bot = self._bot
        await bot.issue_events()
        await bot.on_step(self._iteration)
        with self._client.collecting():
            await bot._after_step()
        self._iteration += 1
        return self._client.take_orders()

    async def see(self, step: Step) -> None:
        """Show the bot the observation after a step; its events follow in the bot's next turn."""
        game_info = await self._game.game_info() if self._fresh_map and not step.ended else None
        seen = step.observed.response
        with self._showing("the observation", step.observed, game_info):
            prepare_step(self._bot, GameState(seen), self._shared.sorter, game_info)
        if step.ended:
            await self._bot.issue_events()
        elif not self._fresh_map:
            before, self._obstacles = self._obstacles, obstacles_of(self._bot)
            if self._obstacles != before:
                info = await self._game.game_info()
                with self._showing("the map's description", step.observed, info):
                    grid = PixelMap(info.start_raw.pathing_grid, in_bits=True)
                    self._bot.game_info.pathing_grid = grid

    async def end(self, result: int | None) -> None:
        """Tell the bot that the game is over; `result` is a `Result`, or None if it is unknown."""
        self._has_ended = True
        await self._bot.on_end(Result(result or Result.Undecided.value))

    async def cut(self) -> None:
        """Tell the bot that the task ended the episode with a tie, like python-sc2's time limit."""
        if not self._has_ended:
            await self.end(self._game.result or sc_pb.Tie)


# Disabled, because python-sc2 logs each order that the player cannot afford, in every game.
logger.disable("sc2")


class GameClient(Client):
    """A bot's client; `has_left` is True once the bot surrendered by `leave`, as in `run_game`."""

    def __init__(self, game: Game) -> None:
        super().__init__(game)  # type: ignore[arg-type]  # only `_execute` would use it
        self.has_left = False
        self._game = game
        self._player_id = game.player_id
        self._orders: list[sc_pb.Action] = []
        self._collects = False

    async def _execute(self, **request: Any) -> sc_pb.Response:  # type: ignore[override]
        response = await self._game.request(sc_pb.Request(**request))
        if response.error:
            raise ProtocolError(str(response.error))
        return response

    @property
    def in_game(self) -> bool:
        return self._game.result is None and not self.has_left

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Keep the orders given in the block; they are sent in the burst of the next step."""
        self._collects = True
        try:
            yield
        finally:
            self._collects = False

    async def actions(
        self, actions: list[UnitCommand], return_successes: bool = False
    ) -> list[ActionResult]:
        """Like python-sc2's method, but orders that wait for the next step have no results yet."""
        if not self._collects:
            return await super().actions(actions, return_successes)
        commands = actions if isinstance(actions, list) else [actions]
        self._orders += [sc_pb.Action(action_raw=raw) for raw in combine_actions(commands)]
        return []

    def take_orders(self) -> list[sc_pb.Action]:
        """Return the orders that were given since the last call."""
        orders, self._orders = self._orders, []
        return orders

    async def leave(self) -> None:
        """Surrender, unless the game is over. The next step ends the game and the episode."""
        if not self.in_game:
            return
        self.has_left = True
        surrender = debug_pb2.DebugEndGame(end_result=debug_pb2.DebugEndGame.Surrender)
        order = debug_pb2.DebugCommand(end_game=surrender)
        await self._execute(debug=sc_pb.RequestDebug(debug=[order]))


_SORT: Final = BotAI._prepare_units
_NAMES: Final = frozenset(
    "is_blip unit_type display_type alliance tag "
    "type_id is_structure "  # `type_id` and `is_structure` are read from the unit's type
    "vespene_contents mineral_ids geyser_ids race_townhalls "
    "state observation_raw effects race base_build "
    "distance_calculation_method _pdist _cdist "
    "append add set".split()
)
"""The lower-case names in python-sc2's sorting code, except those of a bot's groups. A release of
python-sc2 that uses other names may read further fields of a unit."""
_KIND: Final = ("unit_type", "alliance", "display_type", "is_blip")
"""The fields that define the kind of a unit."""
_kind_of: Final = attrgetter(*_KIND)

Kind = tuple[Any, ...]


@dataclass(eq=False)  # objects are hashed and compared by identity, because this is fast
class Place:
    """The groups to which the units of a kind belong.

    Attributes:
        groups: The names of the bot's `Units` that contain such units.
        tags: The names of the bot's sets that contain the tags of such units.
        type_data: The data of the unit's type, if python-sc2 reads such data; else None.
        with_gas: The `Place` of units of this kind that hold gas; None if gas changes nothing.
    """

    groups: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    type_data: Any = None
    with_gas: Place | None = None


class UnitSorter:
    """Sorts the units of an observation into groups, for the bots of one game."""

    def __init__(self, data: GameData) -> None:
        self._data = data
        self._places: dict[Race, dict[Kind, Place]] = defaultdict(dict)
        """For each race of a bot, the `Place` of each kind of unit. If a kind has no groups,
        python-sc2 must sort its units."""
        empty = self._sorted(Race.Terran)
        self._groups = tuple(name for name, value in empty.items() if type(value) is Units)
        self._sets = tuple(name for name, value in empty.items() if type(value) is set)
        names = {name for name in _SORT.__code__.co_names if name.islower()}
        self._is_known = names <= {*_NAMES, *self._groups, *self._sets}
        """True if this release of python-sc2 sorts only by the known names."""

    def can_sort_for(self, bot: BotAI) -> bool:
        """True if `sort` has the same effect as the bot's own method."""
        return (
            self._is_known
            and bot.game_data is self._data
            and bot.distance_calculation_method == 0
            and getattr(bot._prepare_units, "__func__", None) is _SORT
        )

    def sort(self, bot: BotAI, state: GameState) -> None:
        """Sort the state's units, like `bot._prepare_units()`."""
        messages = list(state.observation_raw.units)
        places = self._places_of(bot.race, messages)
        members: dict[str, set[Place]] = {name: set() for name in (*self._groups, *self._sets)}
        for place in set(places):
            if not place.groups:
                _SORT(bot)
                return
            for name in (*place.groups, *place.tags):
                members[name].add(place)
        units = list(map(Unit, messages, repeat(bot), count(), repeat(bot.base_build)))
        # Set tags and type data, so that python-sc2 need not read them now or in the next step.
        for unit, message, place in zip(units, messages, places, strict=True):
            unit.tag = message.tag
            if place.type_data is not None:
                unit._type_data = place.type_data
        for name in self._groups:
            setattr(bot, name, Units(_of(members[name], places, units), bot))
        for name in self._sets:
            setattr(bot, name, {unit.tag for unit in _of(members[name], places, units)})

    def _places_of(self, race: Race, messages: list[raw_pb2.Unit]) -> list[Place]:
        known = self._places[race]
        kinds = list(map(_kind_of, messages))
        try:
            places = list(map(known.__getitem__, kinds))
        except KeyError:
            for kind in set(kinds).difference(known):
                known[kind] = self._place_of(race, kind)
            places = list(map(known.__getitem__, kinds))
        if any(place.with_gas is not None for place in set(places)):
            return [
                place.with_gas if place.with_gas and message.vespene_contents else place
                for place, message in zip(places, messages, strict=True)
            ]
        return places

    def _place_of(self, race: Race, kind: Kind) -> Place:
        """The groups (`Place`) of units of this kind."""
        fields = dict(zip(_KIND, kind, strict=True))
        place = self._shown(race, raw_pb2.Unit(**fields, tag=1))
        with_gas = self._shown(race, raw_pb2.Unit(**fields, tag=1, vespene_contents=1))
        if (place.groups, place.tags) != (with_gas.groups, with_gas.tags):
            place.with_gas = with_gas
        return place

    def _shown(self, race: Race, shown: raw_pb2.Unit) -> Place:
        """The groups (`Place`) into which python-sc2 sorts this unit."""
        found = self._sorted(race, shown)
        groups = tuple(name for name in self._groups if found[name])
        if not groups:
            return Place()
        unit = found[groups[0]][0]
        tags = tuple(name for name in self._sets if shown.tag in found[name])
        return Place(groups, tags, vars(unit).get("_type_data"))

    def _sorted(self, race: Race, *shown: raw_pb2.Unit) -> dict[str, Any]:
        """The attributes that python-sc2 sets on a bot that sees these units."""
        bot = Nobody()
        bot.race, bot.game_data, bot.distance_calculation_method = race, self._data, 0
        raw = SimpleNamespace(units=shown)
        bot.state = SimpleNamespace(observation_raw=raw, effects=set(), game_loop=0)  # type: ignore[assignment]
        before = dict(vars(bot))
        bot._prepare_units()
        return {
            name: value
            for name, value in vars(bot).items()
            if value is not before.get(name, _NOTHING)
        }


def _of(wanted: set[Place], places: list[Place], units: list[Unit]) -> Iterable[Unit]:
    """The units whose `Place` is among the wanted ones."""
    return compress(units, map(wanted.__contains__, places)) if wanted else ()


_NOTHING: Final = object()


class Nobody(BotAI):
    """A bot that does nothing, used to test how python-sc2 reads a message."""

    async def on_step(self, iteration: int) -> None:
        """Never called."""
