"""One episode of one map: world, rules and end.

Rules of an episode:
* The same scenario, seed and requests give the same episode, bit for bit. No code here reads a
  clock, and all random numbers come from the episode's seed.
* A client's request takes effect at the beginning of the next loop, in the order of requests. In a
  game of two clients, requests take effect one loop later, player 1's requests before player 2's.
* An episode ends at the map's time limit, when one of two clients leaves, or by debug command.
* An episode also ends when the client's last unit dies, but not in a `Battle` or `Hunt`, and not on
  an endless map. A map for two players ends when the last unit of either player dies. A melee ends
  only when a side has no structure left.
* The game ends 2^19 loops after create_game, and cannot be restarted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.data.unit_types.files import SCV
from sc2standin.map_reader.scenario import Battle, Bounty, Collect, Hunt, Scenario, Waves
from sc2standin.simulation.computer import Computer
from sc2standin.simulation.console import Controls
from sc2standin.simulation.economy.economy import Economy
from sc2standin.simulation.fights.damage import recover
from sc2standin.simulation.movement import Mover
from sc2standin.simulation.paths import Routes, detours_on
from sc2standin.simulation.rules import (
    BattleRule,
    CollectRule,
    Creep,
    HuntRule,
    Placement,
    WavesRule,
    found_towns,
    place_group,
)
from sc2standin.simulation.sight import Sight
from sc2standin.simulation.spells import Spells
from sc2standin.simulation.terrain import Terrain
from sc2standin.simulation.units import ENEMY, ME, NEVER, OPPONENT, Deposit, Point, Unit
from sc2standin.simulation.world import World

HARD_RESET_LOOPS = 1 << 18
"""How many loops after create_game, over all restarts, `need_hard_reset` is set."""
END_OF_TIME_LOOPS = 1 << 19
"""The game ends this many loops after create_game, and cannot be restarted."""
CAMERA_BELOW = 3.0
"""The camera begins this many cells below the centre of the playable area."""


OPPOSITE = {
    sc_pb.Victory: sc_pb.Defeat,
    sc_pb.Defeat: sc_pb.Victory,
    sc_pb.Tie: sc_pb.Tie,
    sc_pb.Undecided: sc_pb.Undecided,
}
"""The opponent's result for each result of a player."""
_NO_COMPUTERS: Mapping[int, sc_pb.Difficulty.ValueType] = {}


@dataclass(frozen=True)
class Quirks:
    """The changes that tempers make to an episode's rules, to imitate faults of the real game."""

    spent: tuple[tuple[float, float, int], ...] = ()
    """The place and content of the deposits that hold less than the map says."""
    late_loops: int = 0
    """The loop at which the units of a battle for one player appear."""
    waves_stall: bool = False
    """True if no wave follows when the last two enemies die in one loop (`Waves.can_stall`)."""


_NO_QUIRKS = Quirks()


Rule = Callable[[], int]
"""A function that applies a rule in this loop; returns the loop of the rule's next effect."""


class _Asked(NamedTuple):
    """A player's request, and the loop after which it takes effect."""

    due: int
    player: int
    deed: Callable[[], None]


class Game:
    """An episode in progress; it is over if `result`, the result of player 1, is set.

    Args:
        scenario: the map.
        seed: the seed of all random numbers.
        fog: if true, the episode has fog of war.
        loops_before: the loops played between create_game and this episode.
        clients: the players that clients play.
        computers: the players that computers play, with their difficulties.
        viewer: the player whose view this process shows; its fog and its console are kept.
        quirks: the changes that tempers make to the episode's rules.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: np.random.SeedSequence,
        *,
        fog: bool,
        loops_before: int,
        clients: frozenset[int] = frozenset({ME}),
        computers: Mapping[int, sc_pb.Difficulty.ValueType] = _NO_COMPUTERS,
        viewer: int = ME,
        quirks: Quirks = _NO_QUIRKS,
    ) -> None:
        self.scenario = scenario
        self.loops_before = loops_before
        self.viewer = viewer
        self.result: sc_pb.Result.ValueType | None = None
        self._is_duel = scenario.players > 1
        self.delay_loops = max(0, len(clients) - 1)
        """The delay of clients' requests, in loops; 0 if they take effect in the next loop."""
        self.terrain = Terrain(scenario)
        # The world has its own random generator: fights must not change units' random places.
        self.world = World(int(seed.generate_state(1)[0]), clients)
        self._asked: list[_Asked] = []
        """The requests that take effect in later loops."""
        self.units_asked: Counter[int] = Counter()
        """The number of units that each player has asked for and that are not created yet."""
        self._ending: sc_pb.Result.ValueType | None = None
        self._bounty = {
            (rule.owner, rule.type): rule.score
            for rule in scenario.rules
            if isinstance(rule, Bounty)
        }
        placement = Placement(self.terrain, np.random.default_rng(seed))
        placement.draw_side()
        for group in scenario.units:
            place_group(self.world, placement, group)
        # Obstacles that may change need `Routes`. In a battle only cliffs are obstacles.
        walls = scenario.economy is not None or not (self.terrain.is_open or scenario.is_battle)
        self.starts: tuple[Point, Point] | None = None
        """The starting places of the players of a melee."""
        players = tuple(sorted(clients | set(computers)))
        if scenario.melee is not None:
            self.starts = found_towns(self.world, scenario.melee, placement, players)
        self.routes = Routes(self.world, self.terrain) if walls else None
        detours = None if walls or self.terrain.is_open else detours_on(scenario)
        self.economies = self._found_economies(players)
        """The economies of the players; outside of a melee only player 1 has one."""
        self.economy = self.economies.get(ME)
        self._deposits = self._contents()
        """The content of each deposit at the start, by its place."""
        self._spend(quirks.spent)
        waves_begin = self._select_army if scenario.army_selected else None
        if waves_begin is not None:
            self.ask(waves_begin, ME)  # the selection takes effect in loop 1, as in the real game
        self._rules = self._rules_of(placement, waves_begin, quirks)
        if scenario.melee is not None:
            for owner, level in sorted(computers.items()):
                give_up = partial(self._give_up, owner)
                computer = Computer(self.world, self.economies[owner], level, give_up)
                self._rules.append(computer.apply)
        for economy in self.economies.values():
            economy.start()
            self._rules.append(economy.apply)
        self._rules.append(Spells(self.world).apply)
        self._has_creep = False
        self.sight = Sight(self.world, self.terrain, viewer) if fog else None
        self._other_sights: dict[int, Sight] = {}
        self.controls = {
            player: Controls(self.world, player, self._first_camera(player))
            for player in clients | {viewer}
        }
        """The consoles of the viewer and of each player that a client plays."""
        self._mover = Mover(self.world, self.terrain, self.routes, detours)
        self._last_loop = min(scenario.time_limit_loops, END_OF_TIME_LOOPS - loops_before)

    def _rules_of(
        self, placement: Placement, waves_begin: Callable[[], None] | None, quirks: Quirks
    ) -> list[Rule]:
        """The rules of the map file that act in the loops; other rules act when a unit dies."""
        rules: list[Rule] = []
        for rule in self.scenario.rules:
            match rule:
                case Collect():
                    rules.append(CollectRule(rule, self.world, placement).apply)
                case Waves():
                    stalls = rule.can_stall and quirks.waves_stall
                    waves = WavesRule(rule, self.world, placement, waves_begin, stalls)
                    rules.append(waves.apply)
                case Battle():
                    begins_at = 0 if self._is_duel else quirks.late_loops
                    parts = rule, self.scenario.units, self.world, placement
                    rules.append(BattleRule(*parts, begins_at).apply)
                case Hunt():
                    rules.append(HuntRule(rule, self.world).apply)
        return rules

    def _first_camera(self, player: int) -> Point:
        workers = [unit for unit in self.world.owned_by(player) if unit.type is SCV]
        if self.scenario.camera_on_workers and workers:
            count = len(workers)
            return sum(one.x for one in workers) / count, sum(one.y for one in workers) / count
        terrain = self.terrain
        return (terrain.x0 + terrain.x1) / 2, (terrain.y0 + terrain.y1) / 2 - CAMERA_BELOW

    def _select_army(self) -> None:
        for player, controls in self.controls.items():
            controls.select(self.world.owned_by(player))

    def _found_economies(self, players: tuple[int, ...]) -> dict[int, Economy]:
        scenario = self.scenario
        if scenario.economy is None or self.routes is None:
            return {}
        parts = scenario.economy, scenario.rules, self.world, self.terrain, self.routes
        owners = players if scenario.melee is not None else (ME,)
        economies = {owner: Economy(*parts, owner=owner) for owner in owners}
        for owner, economy in economies.items():
            economy.town = self.starts[owner - ME] if self.starts is not None else None
        return economies

    def _contents(self) -> dict[Point, int]:
        units = self.world.units if self.economies else ()
        return {(one.x, one.y): one.job.left for one in units if isinstance(one.job, Deposit)}

    def _spend(self, spent: tuple[tuple[float, float, int], ...]) -> None:
        left, world = {(x, y): content for x, y, content in spent}, self.world
        for unit in world.units if spent else ():
            if isinstance(unit.job, Deposit):
                unit.job.left = left.get((unit.x, unit.y), unit.job.left)
        if 0 in left.values():
            fields = (one for one in world.units if one.type.has_minerals)
            world.remove([one for one in fields if left.get((one.x, one.y)) == 0])

    def spent(self) -> tuple[tuple[float, float, int], ...]:
        """The place and content of the deposits that hold less than the map says."""
        left = self._contents()
        contents = [(*place, left.get(place, 0), full) for place, full in self._deposits.items()]
        return tuple((x, y, content) for x, y, content, full in contents if content < full)

    def sight_of(self, player: int) -> Sight | None:
        """A player's sight; None without fog. Call `scan` before a command depends on the sight.

        Each process keeps the sight of both players, because both processes must decide the same
        about each player's commands.
        """
        if self.sight is None or player == self.viewer:
            return self.sight
        if player not in self._other_sights:
            self._other_sights[player] = Sight(self.world, self.terrain, player)
        return self._other_sights[player]

    @property
    def simulation_loop(self) -> int:
        """The number of loops since create_game, over all restarts."""
        return self.loops_before + self.world.loop

    def ask(self, deed: Callable[[], None], player: int) -> None:
        """Call `deed`, a player's request, at the beginning of the loop after its delay."""
        self._asked.append(_Asked(self.world.loop + self.delay_loops, player, deed))

    def advance(self, loops: int, stop: Callable[[], bool]) -> None:
        """Play this many loops, or fewer if the game ends or `stop` is True between two loops."""
        if self.scenario.canned:
            if loops > 0:
                self.do_asked()
            self._count(loops)
            return
        world, sight = self.world, self.sight
        end = world.loop + loops
        while world.loop < end and self.result is None and not stop():
            began = world.loop
            until = end
            # Units recover before requests take effect, so a new unit recovers from the next loop.
            recover(world.recovering, began + 1, 1)
            if self._asked:
                until = min(end, self.do_asked())
            quiet = self._quiet_loops()
            if quiet > 0:
                if sight is not None:
                    until = min(until, sight.next_look)
                self._mover.walk(min(quiet, until - began))
            else:
                self._run_loop()
            if sight is not None and world.loop >= sight.next_look:
                sight.scan()
            if world.loop > began + 1:
                recover(world.recovering, world.loop, world.loop - began - 1)

    def employ(self, units: list[Unit]) -> None:
        """Let new structures that no worker built begin to work, and new tumors to spread creep."""
        if not self._has_creep and any(unit.type.creep for unit in units):
            self._has_creep = True
            self._rules.append(Creep(self.world, self.terrain).apply)
        for economy in self.economies.values():
            for unit in units:
                economy.employ(unit)
        if self.economies:
            self.world.count_units()

    def do_asked(self) -> int:
        """Carry out the requests that are due; returns the loop at which the next ones are due."""
        loop, due = self.world.loop, self._asked
        self._asked = []
        if self.delay_loops:  # a delayed request may not be due yet
            self._asked = [one for one in due if one.due > loop]
            due = sorted((one for one in due if one.due <= loop), key=attrgetter("player"))
        for one in due:
            one.deed()
        if self._asked:
            return min(one.due for one in self._asked)
        self.units_asked.clear()
        return NEVER

    def _quiet_loops(self) -> int:
        """The number of loops from now on in which units only walk as planned."""
        world = self.world
        if world.plan_until <= world.loop or world.doomed or self._ending is not None:
            return 0
        return min(world.plan_until, world.rules_at - 1, self._last_loop - 1) - world.loop

    def _count(self, loops: int) -> None:
        """Count loops in which nothing happens."""
        if self.result is not None or loops <= 0:
            return
        if self._ending is not None:
            loops = 1
        self.world.loop = min(self.world.loop + loops, self._last_loop)
        self._notice_end()

    def end(self, player: int, result: sc_pb.Result.ValueType) -> None:
        """End the episode with the next loop; `result` is the result of this player."""
        self._ending = result if player == ME else OPPOSITE[result]

    def clear_loser(self) -> None:
        """Remove the units of the losing player from the map."""
        for result, loser in ((sc_pb.Defeat, ME), (sc_pb.Victory, ENEMY)):
            if self.result == result:
                self.world.remove(self.world.owned_by(loser))

    def play_on(self) -> None:
        """Continue the game after its end; from now on nobody can win or lose it."""
        self.result = self._ending = None
        self.scenario = replace(self.scenario, endless=True)
        self._last_loop = END_OF_TIME_LOOPS - self.loops_before

    def _give_up(self, player: int) -> None:
        """End the episode with a player's defeat, unless the map is endless."""
        if not self.scenario.endless:
            self.end(player, sc_pb.Defeat)

    def _run_loop(self) -> None:
        world = self.world
        self._mover.plan()
        self._mover.walk(1)
        if world.doomed:
            self._bury()
        if world.loop >= world.rules_at and self.result is None:
            world.rules_at = min([apply() for apply in self._rules], default=NEVER)
        if world.loop >= self._last_loop or self._ending is not None:
            self._notice_end()

    def _notice_end(self) -> None:
        loop = self.world.loop
        if self.result is None and self._ending is not None:
            self.result = self._ending
        if self.result is None and loop >= self._last_loop:
            tie = self._is_duel or self.scenario.melee is not None
            tie |= self.simulation_loop >= END_OF_TIME_LOOPS
            self.result = sc_pb.Tie if tie else sc_pb.Victory

    def _bury(self) -> None:
        world = self.world
        doomed = set(world.doomed)
        world.doomed.clear()
        dead = [unit for unit in world.units if unit.tag in doomed]
        had_units = world.armies[ME].count > 0
        for unit in dead:
            world.scores[ME] += self._bounty.get((unit.owner, unit.type), 0)
            seen_as = OPPONENT.get(unit.owner, unit.owner)
            world.scores[ENEMY] += self._bounty.get((seen_as, unit.type), 0)
        world.bury(dead)
        if self.scenario.endless:
            return
        if self.scenario.melee is not None:
            self._judge_melee()
        elif self._is_duel:
            self._notice_last_death({unit.owner for unit in dead})
        elif had_units and not world.armies[ME].count and not self.scenario.is_battle:
            self.result = sc_pb.Defeat

    def _notice_last_death(self, owners: set[int]) -> None:
        """End a duel if a player whose unit has died has no unit left."""
        lost = owners - {unit.owner for unit in self.world.units}
        if lost >= {ME, ENEMY}:
            self.result = sc_pb.Tie
        elif ME in lost:
            self.result = sc_pb.Defeat
        elif ENEMY in lost:
            self.result = sc_pb.Victory

    def _judge_melee(self) -> None:
        """End a melee if a side has no structures left; it is a tie if neither side has any."""
        lost = not self.world.structures[ME]
        won = len(self.economies) > 1 and not self.world.structures[ENEMY]
        if lost or won:
            self.result = sc_pb.Tie if lost and won else sc_pb.Defeat if lost else sc_pb.Victory
