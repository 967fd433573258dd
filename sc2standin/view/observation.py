"""The observation of an episode: one message, kept from one request to the next.

The message is filled once. Each update then sets only the fields that may have changed. An updated
message equals a newly filled one. Grids that never change are kept as bytes in `Terrain`.

Units and creep out of sight appear in an observation only as the player remembers them. A cloaked
unit that is not detected appears only if the interface sets `show_cloaked`. Deaths and alerts
appear once, in the first observation after they happen.

As in the real game, an observation lists the abilities that at least one of the selected units can
use now. The raw interface shows the effects on the ground that a player sees.

In a melee, the score details have, by category, the costs of the units and structures that a player
has, has lost and has destroyed. Recorded games begin with a score of 1050: 50 minerals, 600 for the
workers, 400 for the command centre. So the score is the sum of the player's minerals and gas, and
of the costs of all units and structures that the player ever had. We guessed two rules: the
category of each structure, and that the score includes the costs of what the player destroyed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb
from s2clientprotocol import score_pb2 as score_pb

from sc2standin.data.abilities import available_to, needs_target
from sc2standin.data.research import RESEARCH_BY_ID
from sc2standin.data.spells import ABILITIES_OF
from sc2standin.data.unit_types.files import TYPE_BY_NAME, WORKERS
from sc2standin.data.unit_types.kinds import STRUCTURE, UnitType
from sc2standin.game_time import LOOPS_PER_DATA_S
from sc2standin.layers.layers import Ground
from sc2standin.layers.screens import ScreensView
from sc2standin.layers.window import Window
from sc2standin.simulation.economy.economy import Economy
from sc2standin.simulation.economy.offers import can_use
from sc2standin.simulation.fights.cloak import is_hidden
from sc2standin.simulation.game import Game
from sc2standin.simulation.sight import Snapshot
from sc2standin.simulation.terrain import FOGGED, HIDDEN, VISIBLE, Cells
from sc2standin.simulation.units import ME, OPPONENT, Point, Site, Unit
from sc2standin.simulation.world import MOST_FOOD, Army, Effect, Losses, World
from sc2standin.view.units import UnitsView

Grid = NDArray[np.uint8]
POWER_CELLS = {"Pylon": 6.5, "WarpPrismPhasing": 3.75}
"""The radius in cells within which a unit powers structures, by the name of its type."""
_NO_UNITS: frozenset[Unit] = frozenset()


class View:
    """A player's observation of one episode, with the parts that its client asked for."""

    def __init__(self, game: Game, options: sc_pb.InterfaceOptions) -> None:
        self._game = game
        self._seen = sc_pb.Observation()
        self._player = game.viewer
        self._economy = game.economies.get(game.viewer)
        self._score = ScoreView(self._seen.score, game) if options.score else None
        self._raw = RawView(self._seen.raw_data, game) if options.raw else None
        has_screen = options.HasField("feature_layer") or options.HasField("render")
        self._screens = ScreensView(self._seen, game, options) if has_screen else None
        self._shows_cloaked = options.show_cloaked
        self._card = CardView(self._seen, game.viewer, self._economy, game.world)
        self._army: Army | None = None
        self._minerals = -1

    def update(self, *, fog: bool, lifted: bool = False) -> sc_pb.Observation:
        """The observation at the current loop; valid until the next update.

        Args:
            fog: if false, the whole map is shown, even if the episode has fog.
            lifted: if true, the units that the client sees only because `fog` is false are marked.
        """
        seen, world = self._seen, self._game.world
        seen.game_loop = world.loop
        minerals = world.minerals
        if self._player != ME:
            minerals = self._economy.minerals if self._economy is not None else 0
        if self._minerals != minerals:
            self._minerals = seen.player_common.minerals = minerals
        army = world.armies[self._player]
        if self._army is not army:
            self._army = army
            _fill_common(seen.player_common, army, self._player)
        if army.workers:
            seen.player_common.idle_worker_count = world.idle_workers(self._player)
        if self._economy is not None:
            seen.player_common.vespene = self._economy.vespene
            seen.player_common.food_used = int(self._economy.food_used)
        if self._score is not None:
            self._score.update()
        controls = self._game.controls[self._player]
        selected = controls.alive(controls.now.selected)
        self._card.update(selected)
        if self._raw is not None or self._screens is not None:
            in_fog = self._in_fog() if lifted else _NO_UNITS
            self._show_map(*self._seen_units(fog=fog), selected, in_fog)
        if world.news.alerts or seen.alerts:
            seen.alerts[:] = [alert for owner, alert in world.news.alerts if owner == self._player]
        world.news.clear()
        return seen

    def _show_map(
        self,
        units: Sequence[Unit | Snapshot],
        grid: Grid | None,
        creep: Cells | None,
        selected: tuple[Unit, ...],
        in_fog: frozenset[Unit],
    ) -> None:
        """Show these units, the visibility `grid` (None without fog), and the creep."""
        if self._game.world.cloaked and not self._shows_cloaked:
            units = [
                one
                for one in units
                if isinstance(one, Snapshot) or not is_hidden(one, self._player)
            ]
        effects = seen_effects(self._game)
        if self._raw is not None:
            self._raw.update(units, grid, selected, in_fog, effects)
            self._raw.show_creep(creep)
        if self._screens is not None:
            power = [(unit.x, unit.y, radius) for unit, radius in _power(self._game)]
            self._screens.update(units, grid, selected, Ground(effects, creep, power))
        if self._raw is not None and self._screens is not None:
            self._raw.show_on_screen(self._screens.window)

    def _in_fog(self) -> frozenset[Unit]:
        """The units that the client sees only because the fog is lifted."""
        sight = self._game.sight
        if sight is None:
            return _NO_UNITS
        sight.scan()
        seen = set(sight.in_sight)
        return frozenset(
            unit
            for unit in self._game.world.units
            if unit not in seen and not unit.type.invulnerable
        )

    def _seen_units(
        self, *, fog: bool
    ) -> tuple[Sequence[Unit | Snapshot], Grid | None, Cells | None]:
        """The units and the creep that the client sees or remembers, and each cell's visibility.

        The tuple's order is: units, visibility, creep. Without fog, the visibility is None.
        """
        sight = self._game.sight if fog else None
        if sight is None:
            return self._game.world.units, None, self._game.world.creep
        sight.scan()
        grid = np.where(sight.lit, VISIBLE, np.where(sight.explored, FOGGED, HIDDEN))
        return [*sight.in_sight, *sight.snapshots], grid.astype(np.uint8), sight.creep


def _fill_common(player: sc_pb.PlayerCommon, army: Army, player_id: int) -> None:
    player.player_id = player_id
    player.vespene = 0
    player.food_cap = min(MOST_FOOD, int(army.food_provided))
    player.food_used = int(army.food)
    player.food_army = int(army.food - army.workers)
    player.food_workers = army.workers
    player.idle_worker_count = 0
    player.army_count = army.soldiers
    player.warp_gate_count = army.warp_gates


def _power(game: Game) -> list[tuple[Unit, float]]:
    """The units that power the client's structures, each with the radius of its power."""
    return [
        (unit, POWER_CELLS[unit.type.name])
        for unit in game.world.owned_by(game.viewer)
        if unit.type.name in POWER_CELLS and not isinstance(unit.job, Site)
    ]


class RawView:
    """The raw interface: units, grids and deaths."""

    def __init__(self, raw: raw_pb.ObservationRaw, game: Game) -> None:
        self._raw, self._game = raw, game
        self._units = UnitsView(raw, game.world, game.terrain, game.viewer)
        self._all_lit = False
        """True if the visibility grid in the message shows no fog."""
        self._creep: Cells | None = None
        """The creep that the message shows."""
        self._camera: Point | None = None
        """The camera's place that the message shows."""
        self._powered_by: Army | None = None
        """The player's `Army` when power sources were last set; a changed army is a new `Army`."""
        self._effects = EffectsView(raw, game.viewer)
        terrain, state = game.terrain, raw.map_state
        for grid, bits in ((state.visibility, 8), (state.creep, 1)):
            grid.bits_per_pixel = bits
            grid.size.x, grid.size.y = terrain.width, terrain.height
        state.creep.data = terrain.bare_bits

    def update(
        self,
        units: Sequence[Unit | Snapshot],
        grid: Grid | None,
        selected: tuple[Unit, ...],
        in_fog: frozenset[Unit],
        effects: list[Effect],
    ) -> None:
        """Show the current loop: these units and effects, and the visibility of each cell."""
        raw, game = self._raw, self._game
        upgrades = game.world.upgrades.of(game.viewer)
        if len(raw.player.upgrade_ids) != len(upgrades):
            raw.player.upgrade_ids[:] = upgrades
        army = game.world.armies[game.viewer]
        if army is not self._powered_by:
            self._powered_by = army
            self._show_power()
        camera = game.controls[game.viewer].now.camera
        if camera != self._camera:
            self._camera = raw.player.camera.x, raw.player.camera.y = camera
        self._units.update(units, selected, in_fog)
        if grid is not None:
            raw.map_state.visibility.data = grid.tobytes()
        elif not self._all_lit:
            raw.map_state.visibility.data = game.terrain.lit_bytes
        self._all_lit = grid is None
        self._effects.update(effects)
        raw.ClearField("event")
        if game.world.news.dead_tags:
            raw.event.dead_units.extend(game.world.news.dead_tags)

    def _show_power(self) -> None:
        """Show the units that power the client's structures."""
        sources = self._raw.player.power_sources
        del sources[:]
        for unit, radius in _power(self._game):
            source = sources.add(radius=radius, tag=unit.tag)
            source.pos.x, source.pos.y = unit.x, unit.y

    def show_creep(self, creep: Cells | None) -> None:
        """Show the cells with creep."""
        if creep is not self._creep:
            self._creep = creep
            bits = self._game.terrain.bare_bits if creep is None else np.packbits(creep).tobytes()
            self._raw.map_state.creep.data = bits

    def show_on_screen(self, screen: Window) -> None:
        """Show which units are on the screen."""
        self._units.show_on_screen(screen)


class CardView:
    """The abilities of the selected units in an observation; the list is replaced if it changes."""

    def __init__(
        self, seen: sc_pb.Observation, player: int, economy: Economy | None, world: World
    ) -> None:
        self._seen, self._player, self._economy, self._world = seen, player, economy, world
        self._selected: tuple[Unit, ...] = ()
        """The units whose abilities are shown."""
        self._shown: list[int] = []

    def update(self, selected: tuple[Unit, ...]) -> None:
        """Show the abilities that the selected units can use."""
        changes = self._economy is not None or any(
            one.type.name in ABILITIES_OF for one in selected
        )
        if selected == self._selected and not (selected and changes):
            return
        self._selected = selected
        card = _possible(selected, self._player, self._economy, self._world.loop)
        if card == self._shown:
            return
        self._shown = card
        del self._seen.abilities[:]
        self._seen.abilities.extend(
            common.AvailableAbility(ability_id=ability_id, requires_point=needs_target(ability_id))
            for ability_id in card
        )


def _possible(
    selected: tuple[Unit, ...], player: int, economy: Economy | None, loop: int
) -> list[int]:
    """The abilities that the player's own units among the selected units can use now."""
    possible: dict[int, None] = {}
    for unit in selected:
        if unit.owner == player:
            for ability_id in available_to(unit.type):
                if ability_id not in possible and can_use(economy, unit, ability_id, loop):
                    possible[ability_id] = None
    return list(possible)


SCANNER_SWEEP = 6


def seen_effects(game: Game) -> list[Effect]:
    """The player's own scans, and the spells' effects on the ground that the player sees."""
    world, player, sight = game.world, game.viewer, game.sight
    if not world.scans and not world.effects:
        return []
    scans = [
        Effect(SCANNER_SWEEP, player, scan.x, scan.y, scan.radius)
        for scan in world.scans
        if scan.owner == player
    ]
    return scans + [
        effect
        for effect in world.effects
        if effect.owner == player or sight is None or sight.sees(effect.x, effect.y)
    ]


class EffectsView:
    """The effects in the raw interface of one player."""

    def __init__(self, raw: raw_pb.ObservationRaw, player: int) -> None:
        self._raw, self._player = raw, player
        self._shown: list[Effect] = []

    def update(self, effects: list[Effect]) -> None:
        """Show these effects on the ground."""
        if effects == self._shown:
            return
        self._shown = effects
        self._raw.ClearField("effects")
        for effect in effects:
            self._raw.effects.add(
                effect_id=effect.id,
                pos=[common.Point2D(x=effect.x, y=effect.y)],
                alliance=raw_pb.Self if effect.owner == self._player else raw_pb.Enemy,
                owner=effect.owner,
                radius=effect.radius,
            )


_OF_LATER_BUILDS = ("current_apm", "current_effective_apm")
"""Fields that do not exist in the build of the game that `ping` reports."""
_SUMS = attrgetter(*Losses.__dataclass_fields__)


class ScoreView:
    """The score of one episode; the message is filled again whenever the score has changed."""

    def __init__(self, score: score_pb.Score, game: Game) -> None:
        self._score, self._world, self._player = score, game.world, game.viewer
        self._economy = game.economies.get(game.viewer)
        self._melee = game.scenario.melee is not None
        self._shown: object = None
        score.score_type = score_pb.Score.Melee if self._melee else score_pb.Score.Curriculum
        _set_to_zero(score.score_details)

    def update(self) -> None:
        """Show the current loop."""
        world = self._world
        economy = self._economy
        money = rates = None
        if economy is not None:
            rates = economy.earnings.rates(world.loop)
            self._show_idle(economy)
            money = (economy.earnings.collected, rates, economy.spent, economy.minerals)
        score, army = world.scores[self._player], world.armies[self._player]
        sums = tuple(map(_SUMS, world.losses.values()))
        current = (score, army, money, sums, world.upgrades.count)
        if current != self._shown:
            self._shown = current
            self._score.score = score
            self._fill_details(army)
            if economy is not None and rates is not None:
                _fill_economy(self._score.score_details, army, economy, rates)
                if self._melee:
                    fill_melee(self._score, world, economy)

    def _show_idle(self, economy: Economy) -> None:
        """Show the idle times, which change in every loop, in seconds of 16 loops."""
        details = self._score.score_details
        details.idle_worker_time = economy.idle_worker_loops / LOOPS_PER_DATA_S
        details.idle_production_time = economy.idle_production_loops / LOOPS_PER_DATA_S

    def _fill_details(self, army: Army) -> None:
        details, losses = self._score.score_details, self._world.losses
        mine, theirs = losses[self._player], losses[OPPONENT[self._player]]
        used_minerals = army.minerals + mine.minerals
        used_vespene = army.vespene + mine.vespene
        details.total_value_units = used_minerals + used_vespene
        details.killed_value_units = theirs.minerals + theirs.vespene
        details.food_used.army = army.food
        details.killed_minerals.army = theirs.minerals
        details.killed_vespene.army = theirs.vespene
        details.lost_minerals.army = mine.minerals
        details.lost_vespene.army = mine.vespene
        details.used_minerals.army = army.minerals
        details.used_vespene.army = army.vespene
        details.total_used_minerals.army = used_minerals
        details.total_used_vespene.army = used_vespene
        details.total_damage_dealt.life = theirs.life
        details.total_damage_dealt.shields = theirs.shields
        details.total_damage_taken.life = mine.life
        details.total_damage_taken.shields = mine.shields
        details.total_healed.life = mine.healed_life


def _fill_economy(
    details: score_pb.ScoreDetails, army: Army, economy: Economy, rates: tuple[float, float]
) -> None:
    """Set the income and spending; count workers and structures separately from the army."""
    details.collected_minerals, details.collected_vespene = economy.earnings.collected
    details.collection_rate_minerals, details.collection_rate_vespene = rates
    details.spent_minerals, details.spent_vespene = economy.spent
    details.total_value_structures = army.structure_minerals
    details.total_value_units -= army.structure_minerals
    details.food_used.economy = army.workers
    details.food_used.army = army.food - army.workers


def _set_to_zero(details: score_pb.ScoreDetails) -> None:
    """Set every field to 0, because the game sends all fields."""
    for field in details.DESCRIPTOR.fields:
        if field.name in _OF_LATER_BUILDS:
            continue
        if field.message_type is None:
            setattr(details, field.name, 0.0)
        else:
            part = getattr(details, field.name)
            for number in field.message_type.fields:
                setattr(part, number.name, 0.0)


CATEGORIES = ("army", "economy", "technology")
_ECONOMY = {
    *WORKERS,
    *(TYPE_BY_NAME[name] for name in ("Refinery", "SupplyDepot", "SupplyDepotLowered")),
    *(kind for name, kind in TYPE_BY_NAME.items() if "Command" in name),
    TYPE_BY_NAME["PlanetaryFortress"],
}


def category(kind: UnitType) -> str:
    """The category of a unit type in the score."""
    if kind in _ECONOMY:
        return "economy"
    return "technology" if STRUCTURE in kind.attributes else "army"


def fill_melee(score: score_pb.Score, world: World, economy: Economy) -> None:
    """Set a melee's fields that are split into categories, and its total score."""
    details, owner = score.score_details, economy.owner
    lost, killed = world.losses[owner].units, world.losses[OPPONENT[owner]].units
    have = Counter(unit.type for unit in world.owned_by(owner) if not isinstance(unit.job, Site))
    ever = have + lost
    _fill(details.used_minerals, details.used_vespene, have)
    _fill(details.total_used_minerals, details.total_used_vespene, ever)
    _fill(details.lost_minerals, details.lost_vespene, lost)
    _fill(details.killed_minerals, details.killed_vespene, killed)
    for of_minerals, of_vespene in (
        (details.used_minerals, details.used_vespene),
        (details.total_used_minerals, details.total_used_vespene),
    ):
        of_minerals.upgrade, of_vespene.upgrade = _paid(world.upgrades.of(owner))
    details.total_value_units, details.total_value_structures = _values(ever)
    details.killed_value_units, details.killed_value_structures = _values(killed)
    score.score = int(
        economy.minerals
        + economy.vespene
        + details.total_value_units
        + details.total_value_structures
        + details.killed_value_units
        + details.killed_value_structures
    )


def _fill(
    minerals: score_pb.CategoryScoreDetails,
    vespene: score_pb.CategoryScoreDetails,
    kinds: Counter[UnitType],
) -> None:
    for name in CATEGORIES:
        of_it = [(kind, count) for kind, count in kinds.items() if category(kind) == name]
        setattr(minerals, name, float(sum(kind.minerals * count for kind, count in of_it)))
        setattr(vespene, name, float(sum(kind.vespene * count for kind, count in of_it)))


def _paid(upgrades: list[int]) -> tuple[float, float]:
    """The cost of upgrades in minerals and gas."""
    costs = [RESEARCH_BY_ID[id].cost for id in upgrades]
    return float(sum(cost[0] for cost in costs)), float(sum(cost[1] for cost in costs))


def _values(kinds: Counter[UnitType]) -> tuple[float, float]:
    """Two sums of minerals and gas: the cost of the units, and the cost of the structures."""
    return (
        _value(kinds, (kind for kind in kinds if STRUCTURE not in kind.attributes)),
        _value(kinds, (kind for kind in kinds if STRUCTURE in kind.attributes)),
    )


def _value(counts: Counter[UnitType], kinds: Iterable[UnitType]) -> float:
    return float(sum((kind.minerals + kind.vespene) * counts[kind] for kind in kinds))
