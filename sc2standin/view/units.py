"""The units in the observation: each has one message, which is kept while the unit is shown.

Units appear in the order of their creation. Only the client's own units show orders, weapons and
harvesters. `World.population_version` changes whenever the messages of scenery change. A field is
set if recorded messages of the real game have it. A cloaked unit that the client has not detected
shows only its type and place.

On a map with an economy, messages also have progress, harvesters, contents and cargo.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from s2clientprotocol import common_pb2 as common
from s2clientprotocol import raw_pb2 as raw_pb

from sc2standin.data.abilities import OrderKind, shown_as
from sc2standin.data.unit_types.files import SCV, TOWN_HALLS
from sc2standin.data.unit_types.kinds import UnitType
from sc2standin.data.upgrades import Levels
from sc2standin.layers.facts import buffs_of, relative
from sc2standin.layers.window import Window
from sc2standin.simulation.fights.cloak import is_detected, is_hidden
from sc2standin.simulation.sight import SNAPSHOT_TAG, Snapshot
from sc2standin.simulation.terrain import GROUND_Z, Terrain
from sc2standin.simulation.units import Deposit, Factory, Job, Order, Site, Unit, way_to
from sc2standin.simulation.world import World

_WITHOUT_GOAL = (OrderKind.HOLD, OrderKind.RETURN, OrderKind.CHANGE_MODE)
FLYING_Z = 3.75
"""The height of a flying unit above the ground."""


class UnitsView:
    """The units of one episode, as one player sees them."""

    def __init__(
        self, raw: raw_pb.ObservationRaw, world: World, terrain: Terrain, player: int
    ) -> None:
        self._raw, self._world, self._player = raw, world, player
        self._hills = None if terrain.flat else terrain
        """The terrain, which gives heights; None if the ground is flat."""
        self._version = -1
        self._shown: list[Unit | Snapshot] = []
        self._selected: tuple[Unit, ...] = ()
        """The units shown as selected."""
        self._changing: list[_Changing] = []
        self._deposits: list[tuple[Unit, raw_pb.Unit]] = []
        """The mineral fields and geysers, each with its message."""
        self._upgraded = 0
        """The number of upgrades at the last update; an upgrade changes many units' messages."""
        self._in_fog: frozenset[Unit] = frozenset()
        """The units shown as hidden by the fog."""

    def update(
        self,
        units: Sequence[Unit | Snapshot],
        selected: tuple[Unit, ...],
        in_fog: frozenset[Unit],
    ) -> None:
        """Show these units at the current loop.

        Args:
            in_fog: the units that are shown although they are in the fog.
        """
        upgraded = self._world.upgrades.count
        if self._in_fog != in_fog or self._upgraded != upgraded:
            self._in_fog, self._upgraded = in_fog, upgraded
            self._replace(())  # fill all messages again, which is rarely necessary
            self._version = -1
        if self._version != self._world.population_version or self._shown != units:
            self._version = self._world.population_version
            self._replace(units)
            self._select(selected)
        elif self._selected != selected:
            self._select(selected)
        loop = self._world.loop
        for one in self._changing:
            one.update(loop)
        for unit, message in self._deposits:
            if isinstance(unit.job, Deposit):
                show_contents(message, unit, unit.job)

    def show_on_screen(self, screen: Window) -> None:
        """Set `is_on_screen` of each unit."""
        for unit, message in zip(self._shown, self._raw.units, strict=True):
            message.is_on_screen = screen.shows(unit.x, unit.y, message.radius)

    def _select(self, selected: tuple[Unit, ...]) -> None:
        """Set `is_selected` of each unit."""
        if not selected and not self._selected:
            return
        self._selected, tags = selected, {unit.tag for unit in selected}
        for unit, message in zip(self._shown, self._raw.units, strict=True):
            if isinstance(unit, Unit):
                message.is_selected = unit.tag in tags

    def _replace(self, units: Sequence[Unit | Snapshot]) -> None:
        """Remove and add messages, so that there is one message for each unit."""
        messages, shown = self._raw.units, self._shown
        staying = set(units)
        for i in reversed(range(len(shown))):
            if shown[i] not in staying:
                del messages[i], shown[i]
        if shown != units[: len(shown)]:  # a newly shown unit stands before one shown earlier
            del messages[:]
            shown.clear()
        for unit in units[len(shown) :]:
            if isinstance(unit, Snapshot):
                _fill_snapshot(messages.add(), unit, self._player, self._hills)
            else:
                self._show(messages.add(), unit)
        self._shown = list(units)
        self._changing.clear()
        self._deposits.clear()
        for unit, message in zip(units, messages, strict=True):
            if isinstance(unit, Snapshot):
                continue
            if unit.type.invulnerable:
                message.pos.x, message.pos.y = unit.x, unit.y
                if self._hills is not None:
                    message.pos.z = self._hills.z_at(unit.x, unit.y)
                if unit.job is not None:
                    self._deposits.append((unit, message))
                continue
            # Since the last update, a unit's type or a cloaked unit's detection may have changed.
            if unit.type.cloaked or message.unit_type != unit.type.id:
                self._show(message, unit)
            changing = _Changing(unit, message, self._world, self._player, self._hills)
            self._changing.append(changing)

    def _show(self, message: raw_pb.Unit, unit: Unit) -> None:
        """Fill the message of a unit."""
        _fill(message, unit, self._player)
        if self._upgraded and not is_hidden(unit, self._player):
            _show_levels(message, self._world.upgrades.levels_of(unit.owner, unit.type))
        if unit in self._in_fog:
            message.display_type = raw_pb.Hidden
            message.cloak = raw_pb.CloakedUnknown


class _Changing:
    """A unit that is not scenery, and its message, which changes from loop to loop."""

    __slots__ = (
        "_armed",
        "_buffs",
        "_engaged",
        "_growing",
        "_hidden",
        "_hills",
        "_message",
        "_mine",
        "_order",
        "_pos",
        "_queue",
        "_unit",
        "_world",
    )

    def __init__(
        self, unit: Unit, message: raw_pb.Unit, world: World, player: int, hills: Terrain | None
    ) -> None:
        self._unit, self._message, self._pos = unit, message, message.pos
        self._world, self._hills = world, hills
        self._mine = unit.owner == player
        self._hidden = is_hidden(unit, player)
        self._armed = unit.type.weapon is not None
        self._engaged = message.engaged_target_tag
        """The tag of the target that the message shows."""
        self._growing = message.build_progress < 1.0
        """True if the unit is shown as unfinished."""
        self._order: Order | None = None
        """The order that the message shows; None before the first update."""
        self._buffs = list(message.buff_ids)
        """The buffs that the message shows."""
        self._queue: list[Order] = []

    def update(self, loop: int) -> None:
        unit, message, pos = self._unit, self._message, self._pos
        pos.x = unit.x
        pos.y = unit.y
        if self._hills is not None:
            pos.z = self._hills.z_at(unit.x, unit.y) + (FLYING_Z if unit.type.flies else 0.0)
        message.facing = unit.facing
        if self._hidden:
            return
        message.health = max(unit.life, 0.0)
        message.shield = unit.shields
        message.energy = unit.energy
        if unit.buffs or unit.type.buff_id or unit.cargo != (0, 0) or self._buffs:
            self._show_buffs(loop)
        if self._mine:
            if self._armed:
                message.weapon_cooldown = max(unit.ready_at - loop, 0.0)
                if unit.engaged != self._engaged:
                    self._show_target(unit.engaged)
            if unit.order is not self._order or unit.queue != self._queue:
                self._order, self._queue = unit.order, unit.queue.copy()
                _fill_orders(message, unit, self._hills)
            if unit.job is not None or unit.term is not None:
                show_job(message, unit, unit.job, self._world)
        elif isinstance(unit.job, Site | Factory):
            show_progress(message, unit.job)
        if unit.type.hallucination and not self._mine:
            message.is_hallucination = is_detected(self._world, unit)
        if isinstance(unit.job, Site):
            self._growing = True
        elif self._growing and unit.job is None:
            self._growing, message.build_progress = False, 1.0

    def _show_buffs(self, loop: int) -> None:
        buffs = buffs_of(self._unit, loop, mine=self._mine)
        if buffs != self._buffs:
            self._message.buff_ids[:] = self._buffs = buffs

    def _show_target(self, tag: int) -> None:
        self._engaged = tag
        if tag:
            self._message.engaged_target_tag = tag
        else:
            self._message.ClearField("engaged_target_tag")


def _fill(message: raw_pb.Unit, unit: Unit, player: int) -> None:
    """Set the fields of a unit that stay the same while the unit lives."""
    message.CopyFrom((_outline if is_hidden(unit, player) else _template)(unit.type))
    message.tag = unit.tag
    message.owner = unit.owner
    message.alliance = relative(unit.owner, player)
    message.facing = unit.facing
    if unit.owner == player:
        message.assigned_harvesters = message.ideal_harvesters = 0
    if unit.owner != player or not unit.type.mobile:
        message.is_powered = False
    if unit.type.hallucination and unit.owner == player:
        message.is_hallucination = True
    if unit.type.cloaked:
        _show_cloak(message, unit, player)


def _show_levels(message: raw_pb.Unit, levels: Levels) -> None:
    """Set the levels of upgrades in a unit's message, if the message has such fields."""
    if message.HasField("attack_upgrade_level"):
        message.attack_upgrade_level = levels.attack
    if message.HasField("armor_upgrade_level"):
        message.armor_upgrade_level = levels.armor
        message.shield_upgrade_level = levels.shields


def _show_cloak(message: raw_pb.Unit, unit: Unit, player: int) -> None:
    """Set the cloak state and the display type of a cloaked unit, as a player sees it."""
    if unit.owner == player:
        message.cloak = raw_pb.CloakedAllied
    elif not unit.unseen:
        message.cloak = raw_pb.CloakedDetected
    else:
        message.display_type = raw_pb.Hidden
        message.cloak = raw_pb.Cloaked


def _fill_snapshot(
    message: raw_pb.Unit, seen: Snapshot, player: int, hills: Terrain | None
) -> None:
    """Set the fields of a remembered unit: its type and its last known place."""
    unit = seen.unit
    message.display_type = raw_pb.Snapshot
    message.tag = unit.tag + SNAPSHOT_TAG
    message.unit_type = seen.kind.id
    message.owner = unit.owner
    message.alliance = relative(unit.owner, player)
    message.pos.x, message.pos.y, message.pos.z = seen.x, seen.y, _z(hills, seen.x, seen.y)
    message.facing = 0.0
    message.radius = seen.kind.radius
    message.build_progress = 1.0
    message.cloak = raw_pb.CloakedUnknown
    message.is_on_screen = message.is_blip = message.is_powered = False


def _z(hills: Terrain | None, x: float, y: float) -> float:
    return GROUND_Z if hills is None else hills.z_at(x, y)


def _fill_orders(message: raw_pb.Unit, unit: Unit, hills: Terrain | None) -> None:
    del message.orders[:]
    if unit.type.works:
        message.is_active = unit.order.kind != OrderKind.IDLE
    if unit.order.kind == OrderKind.IDLE:
        return
    for order in (unit.order, *unit.queue):
        shown = message.orders.add()
        shown.ability_id = _shown_ability(unit.type, order)
        if order.target_tag:
            shown.target_unit_tag = order.target_tag
        elif order.kind < OrderKind.TRAIN and order.kind not in _WITHOUT_GOAL:
            pos = shown.target_world_space_pos
            pos.x, pos.y, pos.z = order.x, order.y, _z(hills, order.x, order.y)


def _shown_ability(kind: UnitType, order: Order) -> int:
    if order.makes is not None:
        return order.makes.build_ability_id
    if order.spell is not None:
        return order.spell.shown_as or order.spell.ability_id
    return shown_as(kind, order.kind)


@cache
def _template(kind: UnitType) -> raw_pb.Unit:
    """The fields of a unit that depend on its type alone."""
    unit = raw_pb.Unit()
    unit.CopyFrom(_outline(kind))
    if not kind.invulnerable:
        unit.health_max = kind.life
        unit.shield_max = kind.shields
        unit.energy_max = kind.energy
        unit.armor_upgrade_level = unit.shield_upgrade_level = 0
    if kind.weapon is not None:
        unit.attack_upgrade_level = 0
    return unit


@cache
def _outline(kind: UnitType) -> raw_pb.Unit:
    """The fields of a type that a client sees even on a cloaked unit that it has not detected."""
    return raw_pb.Unit(
        display_type=raw_pb.Visible,
        detect_range=kind.detection or None,
        unit_type=kind.id,
        pos=common.Point(z=GROUND_Z + (FLYING_Z if kind.flies else 0.0)),
        radius=kind.radius,
        build_progress=1.0,
        cloak=raw_pb.NotCloaked,
        is_selected=False,
        is_on_screen=True,
        is_blip=False,
        is_flying=kind.flies,
        is_burrowed=kind.name.endswith("Burrowed"),
        is_hallucination=False,
        is_active=False,
    )


FIELD_CELLS = 14.0
"""The greatest distance of a mineral field from its town hall, in cells."""
HARVESTERS_A_FIELD, HARVESTERS_A_REFINERY = 2, 3
"""The ideal numbers of workers that gather from a field, and from a refinery."""


def show_job(message: raw_pb.Unit, unit: Unit, job: Job | None, world: World) -> None:
    """Set the fields about the job and the limited lifetime of one of the client's units."""
    if unit.term is not None:
        message.buff_duration_remain = unit.term.until - world.loop
        message.buff_duration_max = unit.term.loops
    if isinstance(job, Site):
        show_progress(message, job)
    elif isinstance(job, Factory):
        show_progress(message, job)
        _show_factory(message, unit, job, world)
    elif isinstance(job, Deposit):
        message.build_progress = 1.0
        message.assigned_harvesters = _assigned(world, {unit.tag})
        message.ideal_harvesters = HARVESTERS_A_REFINERY
        show_contents(message, unit, job)


def show_progress(message: raw_pb.Unit, job: Site | Factory) -> None:
    """Set the progress of a structure's construction."""
    left = job.left / job.loops if isinstance(job, Site) and job.loops else 0.0
    message.build_progress = min(max(1.0 - left, 0.0), 1.0)


def show_contents(message: raw_pb.Unit, unit: Unit, job: Deposit) -> None:
    """Set the remaining content of a mineral field, a geyser or a refinery."""
    if unit.type.has_minerals:
        message.mineral_contents = job.left
    else:
        message.vespene_contents = job.left


def _show_factory(message: raw_pb.Unit, unit: Unit, job: Factory, world: World) -> None:
    made = (unit.order.makes, *(order.makes for order in unit.queue))
    message.is_active = made[0] is not None
    for place, (shown, kind) in enumerate(zip(message.orders, made, strict=False)):
        begun = place < len(job.done_at)
        if kind is not None:
            left = job.done_at[place] - world.loop if begun else kind.build_time_loops
            shown.progress = 1.0 - left / kind.build_time_loops
    if job.add_on:
        message.add_on_tag = job.add_on
    else:
        message.ClearField("add_on_tag")
    if unit.type in TOWN_HALLS:
        fields = _fields_of(unit, world)
        message.assigned_harvesters = _assigned(world, fields)
        message.ideal_harvesters = HARVESTERS_A_FIELD * len(fields)
    del message.rally_targets[:]
    for order in job.rally:
        _show_rally(message, order, world)


def _fields_of(hall: Unit, world: World) -> set[int]:
    """The tags of the mineral fields that are near a town hall and not nearer to another one."""
    others = [
        one for one in world.structures[hall.owner] if one.type in TOWN_HALLS and one is not hall
    ]
    found = set()
    for one in world.units:
        if one.type.has_minerals:
            distance = way_to(one, hall.x, hall.y)[2]
            if distance < FIELD_CELLS and all(
                way_to(one, other.x, other.y)[2] >= distance for other in others
            ):
                found.add(one.tag)
    return found


def _show_rally(message: raw_pb.Unit, order: Order, world: World) -> None:
    target = world.by_tag.get(order.target_tag)
    x, y = (order.x, order.y) if target is None else (target.x, target.y)
    shown = message.rally_targets.add(tag=order.target_tag)
    shown.point.x, shown.point.y, shown.point.z = x, y, GROUND_Z


def _assigned(world: World, deposits: set[int]) -> int:
    """The number of SCVs that gather from one of these deposits."""
    return sum(one.workplace in deposits for one in world.workers if one.type is SCV)
