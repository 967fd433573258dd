"""The units in the observation: one message for each, kept while the unit is in sight.

Rules it keeps: units appear in the order of their creation; only the client's own units show
orders and weapons; the message of scenery changes only with `World.population_version`.
"""

from __future__ import annotations

from s2clientprotocol import common_pb2 as common
from s2clientprotocol import raw_pb2 as raw_pb

from sc2pool.standin.abilities import ABILITY_BY_KIND, OrderKind
from sc2pool.standin.terrain import GROUND_Z
from sc2pool.standin.unit_types import UNIT_TYPES, UnitType
from sc2pool.standin.world import ME, NEUTRAL, Order, Unit, World

_ALLIANCE = {ME: raw_pb.Self, NEUTRAL: raw_pb.Neutral}


class UnitsView:
    """The units of one episode."""

    def __init__(self, raw: raw_pb.ObservationRaw, world: World) -> None:
        self._raw, self._world = raw, world
        self._version = -1
        self._shown: list[Unit] = []
        self._changing: list[_Changing] = []

    def update(self, in_sight: list[Unit]) -> None:
        """Show these units at the current loop."""
        if self._version != self._world.population_version or self._shown != in_sight:
            self._version = self._world.population_version
            self._replace(in_sight)
        loop = self._world.loop
        for one in self._changing:
            one.update(loop)

    def _replace(self, in_sight: list[Unit]) -> None:
        """Remove and add messages, so that there is one for each unit."""
        messages, shown = self._raw.units, self._shown
        staying = set(in_sight)
        for i in reversed(range(len(shown))):
            if shown[i] not in staying:
                del messages[i], shown[i]
        if shown != in_sight[: len(shown)]:  # a unit came into sight between two others
            del messages[:]
            shown.clear()
        for unit in in_sight[len(shown) :]:
            _fill(messages.add(), unit)
        self._shown = in_sight.copy()
        self._changing.clear()
        for unit, message in zip(in_sight, messages, strict=True):
            if unit.type.invulnerable:
                message.pos.x, message.pos.y = unit.x, unit.y
            else:
                self._changing.append(_Changing(unit, message))


class _Changing:
    """A unit that is not scenery, and its message."""

    __slots__ = ("_message", "_mine", "_order", "_pos", "_queue", "_unit")

    def __init__(self, unit: Unit, message: raw_pb.Unit) -> None:
        self._unit, self._message, self._pos = unit, message, message.pos
        self._mine = unit.owner == ME
        self._order: Order | None = None
        """The order shown; None before the first update."""
        self._queue: list[Order] = []

    def update(self, loop: int) -> None:
        unit, message, pos = self._unit, self._message, self._pos
        pos.x = unit.x
        pos.y = unit.y
        message.facing = unit.facing
        message.health = max(unit.life, 0.0)
        message.shield = unit.shields
        message.energy = unit.energy
        if self._mine:
            message.weapon_cooldown = max(unit.ready_at - loop, 0.0)
            message.engaged_target_tag = unit.engaged
            if unit.order is not self._order or unit.queue != self._queue:
                self._order, self._queue = unit.order, unit.queue.copy()
                _fill_orders(message, unit)


def _fill(message: raw_pb.Unit, unit: Unit) -> None:
    """Set what stays the same while the unit lives."""
    message.CopyFrom(_TEMPLATES[unit.type])
    message.tag = unit.tag
    message.owner = unit.owner
    message.alliance = _ALLIANCE.get(unit.owner, raw_pb.Enemy)
    message.facing = unit.facing


def _fill_orders(message: raw_pb.Unit, unit: Unit) -> None:
    del message.orders[:]
    if unit.order.kind == OrderKind.IDLE:
        return
    for order in (unit.order, *unit.queue):
        shown = message.orders.add()
        shown.ability_id = ABILITY_BY_KIND[order.kind]
        if order.target_tag:
            shown.target_unit_tag = order.target_tag
        elif order.kind != OrderKind.HOLD:
            pos = shown.target_world_space_pos
            pos.x, pos.y, pos.z = order.x, order.y, GROUND_Z


def _template(kind: UnitType) -> raw_pb.Unit:
    """The fields of a unit that depend on its type alone."""
    unit = raw_pb.Unit(
        display_type=raw_pb.Visible,
        unit_type=kind.id,
        pos=common.Point(z=GROUND_Z),
        radius=kind.radius,
        build_progress=1.0,
        cloak=raw_pb.NotCloaked,
        is_selected=False,
        is_on_screen=True,
        is_blip=False,
        is_flying=False,
        is_burrowed=False,
        is_hallucination=False,
        is_active=False,
        is_powered=False,
    )
    if not kind.invulnerable:
        unit.health_max = kind.life
        unit.shield_max = kind.shields
        unit.energy_max = 0.0
        unit.attack_upgrade_level = unit.armor_upgrade_level = unit.shield_upgrade_level = 0
    return unit


_TEMPLATES = {kind: _template(kind) for kind in UNIT_TYPES}
