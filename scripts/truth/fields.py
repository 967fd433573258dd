"""Counts fields of recorded observations, and finds the fields that the stand-in never fills.

A field is *filled* if a message has a value in it that is not the protocol's default. Examples are
an image with a pixel that is not 0, a number that is not 0, or an entry of a list. The stand-in's
messages come from a tour: a game in which the stand-in shows as much as it can.
"""

from __future__ import annotations

import lzma
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import sc2api_pb2 as sc_pb
from s2clientprotocol import ui_pb2 as ui_pb

from sc2standin.data.unit_types.files import TYPE_BY_NAME
from tests.standin.sessions import OfflineSession, against, command, options

HEAD = ("fields", "of", "carried", "filled", "why the stand-in never fills them")
IMAGE, PANEL_UNIT = common.ImageData.DESCRIPTOR, ui_pb.UnitInfo.DESCRIPTOR
WHOLE = (IMAGE, PANEL_UNIT)
"""The kinds of messages that count as one field, so that the fields inside are not counted."""


@dataclass
class Count:
    """How often a field occurs.

    Attributes:
        messages: the number of messages that may carry the field.
        carried: the number of messages that carry it.
        filled: the number of messages in which the field has a value that is not the default.
    """

    messages: int = 0
    carried: int = 0
    filled: int = 0


Counts = defaultdict[str, Count]


def count(observations: Iterable[sc_pb.ResponseObservation]) -> Counts:
    """The count of each field, by the field's path from the observation."""
    counts: Counts = defaultdict(Count)
    for one in observations:
        _count(one, "", counts)
    return counts


def _count(message: Message, before: str, counts: Counts) -> None:
    for field in message.DESCRIPTOR.fields:
        found, value = counts[before + field.name], getattr(message, field.name)
        found.messages += 1
        parts: Any = value if field.is_repeated else [value] * message.HasField(field.name)
        found.carried += bool(parts)
        found.filled += any(_is_filled(part, field) for part in parts)
        if field.message_type not in (None, *WHOLE):
            for part in parts:
                _count(part, f"{before}{field.name}.", counts)


def _is_filled(value: Any, field: Any) -> bool:
    if field.message_type is IMAGE:
        return any(value.data)
    return field.message_type is not None or field.is_repeated or value != field.default_value


def known_fields(kind: Descriptor = sc_pb.ResponseObservation.DESCRIPTOR) -> Iterator[str]:
    """The paths of all fields that the protocol defines."""
    for field in kind.fields:
        yield field.name
        if field.message_type not in (None, *WHOLE):
            yield from (f"{field.name}.{below}" for below in known_fields(field.message_type))


def recorded(folder: Path) -> list[sc_pb.ResponseObservation]:
    """The recorded observations in a folder."""

    def content(path: Path) -> bytes:
        return lzma.decompress(path.read_bytes())

    return [
        sc_pb.ResponseObservation.FromString(content(path))
        for path in sorted(folder.glob("*.observation.pb.xz"))
    ] + [
        text_format.Parse(content(path).decode(), sc_pb.ResponseObservation())
        for path in sorted(folder.glob("*_observation.pbtxt.xz"))
    ]


WHY: dict[str, str] = {
    r"blip$|radar": "sensor towers show nothing",
    r"cargo|passengers": "nobody is carried",
    r"larva_count": "there are no larvae",
    r"is_powered": "structures need no power",
    r"\.z$": "no recorded message has it",
    r"_apm$": "of later builds",
    r"friendly_fire": "not counted",
    r"\.none$|\.upgrade$|food_used\.technology": "nothing is of this category",
    r"vespene\.economy": "nothing of this category costs gas",
    r"\.energy$|healed\.shields": "not counted",
    r"minimap_renders\.alerts|buff_duration|placeholder": "a layer of zeros",
}
"""A dict from patterns of fields' paths to reasons why the stand-in never fills such fields."""


def never_filled(ours: Counts) -> set[str]:
    """The fields of the state that the stand-in never fills.

    Fields inside a message that the stand-in never sends are left out. Fields of `actions` are left
    out, too, because the client itself has sent the actions.
    """
    known = (path for path in known_fields() if not path.startswith("actions"))
    empty = {path for path in known if not ours[path].filled}
    return {path for path in empty if path.rpartition(".")[0] not in empty}


def reason(path: str) -> str:
    """Why the stand-in never fills a field; empty if no reason is known."""
    return next((why for pattern, why in WHY.items() if re.search(pattern, path)), "")


def rows(theirs: Counts, ours: Counts) -> Iterator[tuple[Any, ...]]:
    """The rows of the table; fields that have equal counts and the same reason share a row."""
    groups: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for path in sorted(never_filled(ours)):
        real = theirs[path]
        shares = [f"{part / real.messages:.0%}" for part in (real.carried, real.filled)]
        name = path.removeprefix("observation.").replace("score.score_details.", "")
        groups[(reason(path), str(real.messages), *shares)].append(name)
    for (why, *counts), names in groups.items():
        yield ", ".join(f"`{name}`" for name in names), *counts, why


# ---- the tour -----------------------------------------------------------------------------------

HERE = (40.0, 48.0)
MINE = (
    *(("Barracks", 36.5, 40.5), ("BarracksTechLab", 39, 40), ("Factory", 44.5, 40.5)),
    *(("EngineeringBay", 36.5, 56.5), ("Pylon", 44, 56), ("WarpGate", 48.5, 56.5)),
    *(("OrbitalCommand", 30.5, 36.5), ("SupplyDepot", 30, 52), ("MissileTurret", 44, 52)),
    *(("Marine", 40, 47, 4), ("Marauder", 41, 47), ("Medivac", 41, 48), ("Zealot", 38, 50)),
    *(("Sentry", 38, 48), ("Raven", 37, 49), ("Banshee", 37, 47), ("SCV", 36, 50, 3)),
)
ENEMIES = (
    *(("CreepTumorBurrowed", 46, 44), ("DarkTemplar", 54, 60), ("HighTemplar", 47, 52)),
    *(("Roach", 46, 50, 2), ("Zealot", 46, 48), ("SupplyDepot", 50, 44), ("SCV", 52, 46)),
    *(("Armory", 48.5, 54.5), ("Factory", 50.5, 46.5)),
)
ORDERS = (  # each entry: the loops to play after its orders, and its orders (type, ability, target)
    (3, (("Sentry", 154), ("Raven", 1764, (39.0, 51.0)), ("Factory", 3682), ("Barracks", 560))),
    (3, (("BarracksTechLab", 730), ("Barracks", 195, (40.0, 44.0)), ("Barracks", 560))),
    (9, (("Marine", 380), ("Banshee", 16, (30.0, 48.0)), ("Zealot", 17, (34.0, 50.0)))),
    (3, (("OrbitalCommand", 399, (60.0, 70.0)), ("HighTemplar", 1036, (40.0, 47.0)))),
    (90, (("SCV", 319, (34.0, 46.0)), ("EngineeringBay", 652), ("Marine", 23, (46.0, 48.0)))),
)


def tour(data_dir: Path) -> Iterator[sc_pb.ResponseObservation]:
    """Observations of a game that shows as much as possible, from the stand-in in `data_dir`."""
    session = OfflineSession(data_dir)
    session.start("Melee/Flat64", interface=_all_screens(), player_setup=against(sc_pb.VeryEasy))
    for names in CHEATS:
        session.toggle(*names)
        session.step()
        yield session.observed()
    for owner, units in enumerate((MINE, ENEMIES), 1):
        session.spawn(*((TYPE_BY_NAME[name].id, owner, *where) for name, *where in units))
    session.act(_camera(*HERE), sc_pb.Action(action_chat=sc_pb.ActionChat(message="hello")))
    session.step(4)
    yield session.observed()
    for name, what, value in (("Sentry", "Energy", 75), ("Marauder", "Life", 40)):
        session.set_value(session.one(TYPE_BY_NAME[name].id), what, value)
    session.set_value(session.one(TYPE_BY_NAME["HighTemplar"].id), "Energy", 200)
    session.step()
    for loops, orders in ORDERS:
        session.act(*(_order(session, *order) for order in orders))
        session.step(loops)
        yield session.observed()
    session.toggle(debug_pb.fast_build)  # off again
    session.act(_order(session, "SCV", 319, (34.0, 44.0)))
    session.step(60)
    for part in _clicks(session):
        session.act(part)
        session.step()
        yield session.observed()
    units = session.observe().raw_data.units
    session.kill([unit for unit in units if unit.owner == 2])
    session.kill([unit for unit in units if unit.owner == 1][::2])
    session.step(2)
    yield session.observed()
    session.act(command([12345], 16, HERE))
    session.debug(debug_pb.DebugCommand(end_game=debug_pb.DebugEndGame()))
    session.step()
    yield session.observed()
    yield from _gas(OfflineSession(data_dir))


CHEATS = (
    (debug_pb.all_resources, debug_pb.tech_tree, debug_pb.food, debug_pb.upgrade),
    (debug_pb.upgrade, debug_pb.fast_build, debug_pb.control_enemy),
)


def _gas(session: OfflineSession) -> Iterator[sc_pb.ResponseObservation]:
    """Observations of a mini-game in which an SCV brings gas."""
    session.start("CollectMineralsAndGas")
    geyser, *_ = session.units(TYPE_BY_NAME["VespeneGeyser"].id)
    session.spawn((TYPE_BY_NAME["Refinery"].id, 1, geyser.pos.x, geyser.pos.y))
    session.step()
    session.order(_of(session, "SCV"), 295, target=_of(session, "Refinery"))
    for _ in range(40):
        session.step(8)
        yield session.observed()


def _all_screens() -> sc_pb.InterfaceOptions:
    interface = options(crop_to_playable_area=True, allow_cheating_layers=True)
    interface.show_cloaked = True
    for image in (interface.render.resolution, interface.render.minimap_resolution):
        image.x = image.y = 64
    return interface


def _of(session: OfflineSession, name: str, owner: int = 0) -> Any:
    """The first unit of a type that this owner has; the owner 0 stands for any owner."""
    units = session.units(TYPE_BY_NAME[name].id)
    return next(unit for unit in units if owner in (0, unit.owner))


def _order(session: OfflineSession, name: str, ability_id: int, *where: Any) -> sc_pb.Action:
    return command(_of(session, name), ability_id, *where)


def _camera(x: float, y: float) -> sc_pb.Action:
    action = sc_pb.Action()
    center = action.action_raw.camera_move.center_world_space
    center.x, center.y = x, y
    return action


def _clicks(session: OfflineSession) -> Iterator[sc_pb.Action]:
    """Actions that select everything on the screen, the army, or single units by a click."""
    everything = sc_pb.Action()
    box = everything.action_feature_layer.unit_selection_rect.selection_screen_coord.add()
    box.p0.x = box.p0.y = 1
    box.p1.x = box.p1.y = 83
    yield everything
    group = ui_pb.ActionControlGroup(action=ui_pb.ActionControlGroup.Set, control_group_index=1)
    yield sc_pb.Action(action_ui=ui_pb.ActionUI(control_group=group))
    for name, ability_id in (("Sentry", 4), ("Barracks", 560), ("Marine", 380), ("SupplyDepot", 0)):
        session.act(_order(session, name, ability_id))
        session.step(2)
        unit, camera = _of(session, name, 1), session.observe().raw_data.player.camera
        action = sc_pb.Action()
        click = action.action_feature_layer.unit_selection_point
        click.type = click.Select
        click.selection_screen_coord.x = int(42 + (unit.pos.x - camera.x) * 84 / 24)
        click.selection_screen_coord.y = int(42 - (unit.pos.y - camera.y) * 84 / 24)
        yield action
