"""One episode of one map: world, rules and end.

Rules it keeps:
- the same scenario, seed and requests give the same episode, bit for bit: no code here reads a
  clock, and all random numbers come from the episode's seed;
- what a client asks for takes effect at the beginning of the next loop, in the order of asking;
- an episode ends at the map's time limit, when the client's last unit dies, or by a debug command.
  2^19 loops after create_game it ends for good.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.standin.data.scenario import Bounty, Collect, Scenario, Waves
from sc2pool.standin.simulation.economy.economy import Economy
from sc2pool.standin.simulation.movement import Mover
from sc2pool.standin.simulation.placement import Placement, place_group
from sc2pool.standin.simulation.rules import CollectRule, WavesRule
from sc2pool.standin.simulation.shields import regenerate
from sc2pool.standin.simulation.sight import Sight
from sc2pool.standin.simulation.terrain import Terrain
from sc2pool.standin.simulation.world import NEVER, World

HARD_RESET_LOOPS = 1 << 18
"""Loops since create_game, over all restarts, after which `need_hard_reset` is set."""
END_OF_TIME_LOOPS = 1 << 19
"""Loops since create_game at which the game ends; then it cannot be restarted."""


class Game:
    """An episode in progress; over if `result` is set."""

    def __init__(
        self, scenario: Scenario, seed: np.random.SeedSequence, *, fog: bool, loops_before: int
    ) -> None:
        self.scenario = scenario
        self.loops_before = loops_before
        self.result: sc_pb.Result.ValueType | None = None
        self.terrain = Terrain(scenario)
        # Not drawn from the placement's generator: where units stand does not depend on fights.
        self.world = World(int(seed.generate_state(1)[0]))
        self._asked: list[Callable[[], None]] = []
        """What takes effect with the next loop."""
        self.units_asked = 0
        """Units that are created with the next loop."""
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
        self._rules: list[CollectRule | WavesRule | Economy] = [
            CollectRule(rule, self.world, placement)
            if isinstance(rule, Collect)
            else WavesRule(rule, self.world, placement)
            for rule in scenario.rules
            if isinstance(rule, Collect | Waves)
        ]
        self.economy: Economy | None = None
        if scenario.economy is not None:
            self.economy = Economy(scenario.economy, scenario.rules, self.world, self.terrain)
            self._rules.append(self.economy)
        for rule in self._rules:
            rule.start()
        self.sight = Sight(self.world, self.terrain) if fog else None
        self._mover = Mover(self.world, self.terrain)
        self._last_loop = min(scenario.time_limit_loops, END_OF_TIME_LOOPS - loops_before)

    @property
    def simulation_loop(self) -> int:
        """Loops since create_game, over all restarts."""
        return self.loops_before + self.world.loop

    def ask(self, deed: Callable[[], None]) -> None:
        """Do this at the beginning of the next loop."""
        self._asked.append(deed)

    def advance(self, loops: int, stop: Callable[[], bool]) -> None:
        """Play this many loops, or until the end, or until `stop()` is true between two."""
        if self._asked and loops > 0:
            self.do_asked()
        if self.scenario.canned:
            self._count(loops)
            return
        world, sight = self.world, self.sight
        end = world.loop + loops
        while world.loop < end and self.result is None and not stop():
            began = world.loop
            quiet = self._quiet_loops()
            if quiet > 0:
                until = end if sight is None else min(end, sight.next_look)
                self._mover.walk(min(quiet, until - began))
            else:
                self._run_loop()
            if sight is not None and world.loop >= sight.next_look:
                sight.look()
            if world.shielded:
                regenerate(world.shielded, world.loop, world.loop - began)

    def do_asked(self) -> None:
        """Begin a loop: do what was asked for since the last one."""
        asked, self._asked = self._asked, []
        for deed in asked:
            deed()
        self.units_asked = 0

    def _quiet_loops(self) -> int:
        """Loops from now on in which units walk on as planned, and nothing else happens."""
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

    def end(self, result: sc_pb.Result.ValueType) -> None:
        """End the episode with the next loop."""
        self._ending = result

    def _run_loop(self) -> None:
        world = self.world
        self._mover.plan()
        self._mover.walk(1)
        if world.doomed:
            self._bury()
        if world.loop >= world.rules_at and self.result is None:
            world.rules_at = min((rule.apply() for rule in self._rules), default=NEVER)
        if world.loop >= self._last_loop or self._ending is not None:
            self._notice_end()

    def _notice_end(self) -> None:
        loop = self.world.loop
        if self.result is None and self._ending is not None:
            self.result = self._ending
        if self.result is None and loop >= self._last_loop:
            in_time = loop < self.scenario.time_limit_loops
            self.result = sc_pb.Tie if in_time else sc_pb.Victory

    def _bury(self) -> None:
        world = self.world
        doomed = set(world.doomed)
        world.doomed.clear()
        dead = [unit for unit in world.units if unit.tag in doomed]
        had_units = world.army.count > 0
        world.score += sum(self._bounty.get((unit.owner, unit.type), 0) for unit in dead)
        world.bury(dead)
        if had_units and not world.army.count:
            self.result = sc_pb.Defeat
