"""Spells: units walk into range and cast, with effects on the ground and on units.

Energy is spent when a spell is cast. A spell whose target is gone is not cast. A caster may die
before its spell takes effect. Observations show buffs, but a buff has no effect: all effects of a
spell are numbers in `data.spells`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.data.abilities import OrderKind
from sc2standin.data.spells import Aim, Side, Spell
from sc2standin.data.unit_types.files import TYPE_BY_NAME
from sc2standin.data.unit_types.kinds import BIOLOGICAL, STRUCTURE, UnitType, hallucination_of
from sc2standin.simulation import orders
from sc2standin.simulation.fights.damage import explode, harm
from sc2standin.simulation.fights.pairs import hostile
from sc2standin.simulation.units import NEVER, STOPPED, Site, Term, Unit, way_to
from sc2standin.simulation.world import Effect, World


@dataclass
class _Cast:
    """A spell that was cast and is not over yet."""

    spell: Spell
    owner: int
    x: float
    y: float
    target_tag: int
    """Tag of the unit at which the spell is aimed, or with which the spell moves; 0 for none."""
    due: int
    """The loop at which the spell takes effect."""
    until: int
    """The loop at which the spell is over."""
    left: tuple[int, ...] = ()
    """Tags of the units that the spell has created: a marker, summoned units, or a merged unit."""
    met: list[Unit] = field(default_factory=list)
    """The units that the spell affects."""


class Spells:
    """All spells of one episode."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._casts: list[_Cast] = []

    def apply(self) -> int:
        """Cast and continue spells; returns the next loop at which to apply the rule."""
        world = self._world
        if world.casting:
            casters = [unit for unit in world.units if unit.order.kind == OrderKind.CAST]
            for unit in casters:
                if unit.order.kind == OrderKind.CAST:  # a merge with an earlier unit ends the order
                    self._try(unit)
            world.casting = bool(casters)
        if not world.casting and not self._casts:
            return NEVER
        for cast in self._casts:
            self._go_on(cast)
        for cast in self._casts:
            for tag in cast.left:
                if tag in world.by_tag:
                    self._grow_or_end(cast, world.by_tag[tag])
        self._casts = [cast for cast in self._casts if cast.until > world.loop]
        world.effects = [
            Effect(cast.spell.effect_id, cast.owner, cast.x, cast.y, cast.spell.radius)
            for cast in self._casts
            if cast.spell.effect_id
        ]
        if world.doomed:
            world.orders_changed()
        return world.loop + 1

    def _grow_or_end(self, cast: _Cast, left: Unit) -> None:
        """Let a merged unit grow; remove any other created unit when the spell's time is over."""
        over = cast.until <= self._world.loop
        if isinstance(left.job, Site):
            left.job.left = max(0, cast.until - self._world.loop)
            if over:
                left.job = None
                self._world.news.alert(left.owner, sc_pb.MergeComplete)
                self._world.sort_walkers()
        elif over:
            self._world.doomed.append(left.tag)

    def _try(self, unit: Unit) -> None:
        """Let a unit cast if it is in range; end its order if the target is gone."""
        world, order, spell = self._world, unit.order, unit.order.spell
        target = world.by_tag.get(order.target_tag)
        if spell is not None and spell.aim is Aim.PARTNER:
            target = self._partner(unit)
        if spell is None or (target is None and (order.target_tag or spell.aim is Aim.PARTNER)):
            orders.finish(world, unit)
            return
        x, y = (order.x, order.y) if target is None else (target.x, target.y)
        reach = spell.range + unit.type.radius + (0.0 if target is None else target.type.radius)
        if spell.aim is not Aim.SELF and way_to(unit, x, y)[2] > reach:
            return
        orders.finish(world, unit)
        if refusal(unit, spell, world.loop) != error_pb.Success:
            return
        unit.energy -= spell.energy
        if spell.cooldown_loops:
            unit.cools_until[spell.ability_id] = world.loop + spell.cooldown_loops
        if spell.aim is Aim.SELF:
            x, y, target = unit.x, unit.y, unit
        due = world.loop + spell.delay_loops
        tag = 0 if target is None else target.tag
        cast = _Cast(spell, unit.owner, x, y, tag, due, due + spell.lasts_loops)
        left = TYPE_BY_NAME.get(spell.marker or spell.summons or spell.becomes)
        if left is not None:
            kind = hallucination_of(left) if spell.hallucinates else left
            cast.left = tuple(one.tag for one in self._leave(cast, kind, unit, target))
        self._casts.append(cast)

    def _partner(self, unit: Unit) -> Unit | None:
        """A unit of the same owner that has the same order as this unit."""
        others = (
            one
            for one in self._world.units
            if one is not unit and one.owner == unit.owner and one.order == unit.order
        )
        return next(others, None)

    def _leave(self, cast: _Cast, kind: UnitType, caster: Unit, target: Unit | None) -> list[Unit]:
        """Create the units that a spell adds to the map."""
        world = self._world
        if cast.spell.becomes and target is not None:
            target.order = STOPPED
            world.remove([caster, target])
            cast.target_tag = 0
        units = world.spawn(kind, caster.owner, [(cast.x, cast.y)] * cast.spell.count)
        if cast.spell.summons:
            for one in units:
                one.term = Term(cast.until, cast.spell.lasts_loops)
        if cast.spell.becomes:
            units[0].job = Site(cast.spell.lasts_loops, cast.spell.lasts_loops)
            world.sort_walkers()
        return units

    def _go_on(self, cast: _Cast) -> None:
        world, spell = self._world, cast.spell
        target = world.by_tag.get(cast.target_tag)
        if target is not None:
            cast.x, cast.y = target.x, target.y
        elif spell.aim is Aim.SELF and not spell.summons:
            cast.until = world.loop  # the caster, with whom the spell moved, is dead
            return
        if world.loop < cast.due:
            return
        begins = world.loop == cast.due
        if begins or spell.effect_id:  # units may enter an effect on the ground
            cast.met = self._near(cast, target)
        else:
            cast.met = [unit for unit in cast.met if unit.tag in world.by_tag]
        if begins:
            self._take_effect(spell, cast.met)
        lasts = cast.due + 1 if spell.effect_id else cast.until
        for unit in cast.met:
            for buff in spell.buffs:
                unit.buffs[buff] = max(lasts, world.loop + 1, unit.buffs.get(buff, 0))
        self._hurt(cast.met, spell.damage_per_loop)

    def _near(self, cast: _Cast, target: Unit | None) -> list[Unit]:
        """The units that a spell affects at its present place."""
        spell = cast.spell
        found = [] if target is None else [target]
        if spell.radius:
            found = [
                unit
                for unit in self._world.units
                if way_to(unit, cast.x, cast.y)[2] - unit.type.radius <= spell.radius
            ]
        return [unit for unit in found if can_meet(spell, cast.owner, unit)]

    def _take_effect(self, spell: Spell, met: list[Unit]) -> None:
        for unit in met:
            if spell.takes_shields:
                unit.shields = max(0.0, unit.shields - spell.takes_shields)
            if spell.heals:
                self._world.heal(unit, min(spell.heals, unit.type.life - unit.life))
            if spell.takes_energy or spell.takes_energy_share:
                taken = max(spell.takes_energy, unit.energy * spell.takes_energy_share)
                taken = min(unit.energy, taken)
                self._hurt([unit], taken * spell.damage_per_energy)
                unit.energy -= taken
        self._hurt(met, spell.damage)

    def _hurt(self, units: list[Unit], damage: float) -> None:
        if damage:
            world = self._world
            exploding = [unit for unit in units if harm(world, unit, damage)]
            explode(world, world.units, exploding)


def refusal(unit: Unit, spell: Spell, loop: int) -> error_pb.ActionResult.ValueType:
    """Success if a unit can cast a spell now; otherwise the reason for a refusal."""
    if unit.energy < spell.energy:
        return error_pb.NotEnoughEnergy
    cools = loop < unit.cools_until.get(spell.ability_id, 0)
    return error_pb.Cooldown if cools else error_pb.Success


def can_meet(spell: Spell, owner: int, unit: Unit) -> bool:
    """True if a spell of this owner can have an effect on a unit."""
    kind = unit.type
    if kind.invulnerable:
        return False
    if spell.side is not Side.ALL and (spell.side is Side.ENEMIES) != hostile(owner, unit.owner):
        return False
    is_structure = STRUCTURE in kind.attributes
    return (
        not (spell.ground_only and (kind.flies or is_structure))
        and not (spell.biological_only and BIOLOGICAL not in kind.attributes)
        and spell.structures_only in (False, is_structure)
    )
