"""Draws random requests: most are legal, some come at a wrong time, some are damaged.

No request ends or hangs the game process, starts a game in real time, or lets the game draw its
seed. No request asks for more loops or units than the game can play within the reply's time limit.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from google.protobuf.message import DecodeError
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import sc2api_pb2 as sc_pb
from s2clientprotocol import spatial_pb2 as spatial_pb
from s2clientprotocol import ui_pb2 as ui_pb

from sc2standin.data import abilities
from sc2standin.data.unit_types import files
from sc2standin.status import LEGAL, Status, is_legal

ABILITIES = [ability.id for ability in abilities.ABILITIES]
USUAL = (1, 4, 16, 17, 18, 23)
"""Abilities of most units: click, stop, move, patrol, hold and attack."""
UNIT_TYPES = [*(kind.id for kind in files.UNIT_TYPES), 9999]
NUMBERS = (0.0, -1.0, 0.5, 45.0, 1e9, -1e30, math.nan, math.inf)
LOOPS = (0, 1, 1, 2, 8, 8, 22, 64)
MOST_LOOPS = 64
MOST_UNITS = 60
"""No units are created beyond this number, because a loop with hundreds of units takes long."""
MALFORMED, OUT_OF_PLACE = 0.05, 0.05
"""The share of damaged requests, and the share of requests drawn without regard to the status."""
IN_GAME = {
    **{"action": 30, "step": 30, "observation": 30, "debug": 4, "query": 4, "restart_game": 0.4},
    **{"leave_game": 0.4, "create_game": 0.2, "game_info": 0.3, "data": 0.1, "save_replay": 0.3},
    "start_replay": 0.3,
}
"""Weights of the requests that are drawn in a running game; other requests have a weight of 0.1."""

Fields = sc_pb.Request.DESCRIPTOR.oneofs_by_name["request"].fields
KINDS = [field.name for field in Fields if field.name != "quit"]


class Draw:
    """A client that draws its next request from the replies so far."""

    def __init__(self, seed: int, maps: list[str]) -> None:
        self._rng = random.Random(seed)
        self._maps = maps
        self._games = 0
        self.status = Status.LAUNCHED
        self._tags = [0]
        self._mine = [0]
        self._places = [(0.0, 0.0)]
        self._replay = b""
        self._builders: dict[str, Callable[[sc_pb.Request], None]] = {
            "create_game": self._create_game,
            "join_game": self._join_game,
            "observation": self._observation,
            "action": self._action,
            "step": self._step,
            "query": self._query,
            "debug": self._debug,
            "data": self._data,
            "start_replay": self._start_replay,
            "replay_info": self._replay_info,
        }

    def told(self, reply: sc_pb.Response) -> None:
        """Keep a reply's status and facts for the next requests."""
        self.status = Status(reply.status)
        self._replay = reply.save_replay.data or self._replay
        units = reply.observation.observation.raw_data.units
        if units:
            self._tags = [unit.tag for unit in units]
            self._mine = [unit.tag for unit in units if unit.owner == 1] or [0]
            self._places = [(unit.pos.x, unit.pos.y) for unit in units if unit.owner == 1]

    def frame(self) -> bytes:
        """The next request."""
        chance = self._rng.random()
        if chance < MALFORMED:
            return self._malformed()
        return self._request(any_status=chance < MALFORMED + OUT_OF_PLACE)

    def _request(self, *, any_status: bool) -> bytes:
        kinds = [kind for kind in KINDS if any_status or self._fits(kind)]
        weights = [1.0 if any_status else IN_GAME.get(kind, 0.1) for kind in kinds]
        (kind,) = self._rng.choices(kinds, weights)
        request = sc_pb.Request()
        getattr(request, kind).SetInParent()
        if self._rng.random() < 0.9:
            request.id = self._rng.choice((0, 7, 2**32 - 1))
        if kind in self._builders:
            self._builders[kind](request)
        return bytes(request.SerializeToString())

    def _fits(self, kind: str) -> bool:
        # Between two games create_game and join_game are preferred: few other requests are legal.
        if self.status in (Status.LAUNCHED, Status.INIT_GAME) and kind in LEGAL:
            return kind in ("create_game", "join_game") and is_legal(kind, self.status)
        return is_legal(kind, self.status) or kind not in LEGAL

    def _malformed(self) -> bytes:
        rng = self._rng
        while True:
            frame = bytearray(self._request(any_status=rng.random() < 0.3))
            for _ in range(rng.randint(1, 3)):
                at = rng.randrange(len(frame) + 1)
                damage = rng.choice((b"", rng.randbytes(1), rng.randbytes(rng.randint(1, 9))))
                frame[at : at + rng.randint(0, 4)] = damage
            if is_harmless(bytes(frame)):
                return bytes(frame)

    def _create_game(self, request: sc_pb.Request) -> None:
        rng, create = self._rng, request.create_game
        create.random_seed = rng.getrandbits(32)
        create.disable_fog = rng.random() < 0.2
        create.player_setup.add(type=sc_pb.Participant)
        if rng.random() < 0.2:
            create.player_setup.add(type=rng.choice((sc_pb.Computer, sc_pb.Participant)))
        if rng.random() < 0.05:
            create.local_map.map_path = rng.choice(("", "nowhere", "../../etc/passwd", "a\0b"))
        elif rng.random() < 0.05:
            create.local_map.map_data = rng.choice((b"{}", b"MPQ\x1a", b"[" * 9999))
        else:
            create.local_map.map_path = self._maps[self._games % len(self._maps)]
            self._games += 1
        if len(create.player_setup) > 1 and create.player_setup[1].type == sc_pb.Participant:
            # Mini-games refuse a second player; a map for two players would wait for the second.
            create.local_map.map_path = "mini_games/MoveToBeacon.SC2Map"

    def _join_game(self, request: sc_pb.Request) -> None:
        rng, join = self._rng, request.join_game
        if rng.random() < 0.97:
            join.race = rng.randint(1, 4)
        options = join.options
        options.raw = options.score = rng.random() < 0.95
        options.raw_crop_to_playable_area = rng.random() < 0.1
        options.raw_affects_selection = rng.random() < 0.2
        for screen in (options.feature_layer, options.render):
            if rng.random() < 0.15:
                self._screen(screen)

    def _screen(self, setup: sc_pb.SpatialCameraSetup) -> None:
        """Options for feature layers or images, which are small in most cases."""
        rng = self._rng
        for size in (setup.resolution, setup.minimap_resolution):
            size.x, size.y = rng.choice((16, 33)), rng.choice((16, 16, 40, 0))
        setup.width = rng.choice((24, 24, 7.5, 0, math.nan))
        setup.crop_to_playable_area = rng.random() < 0.5
        setup.allow_cheating_layers = rng.random() < 0.5

    def _observation(self, request: sc_pb.Request) -> None:
        request.observation.disable_fog = self._rng.random() < 0.1
        request.observation.game_loop = self._rng.choice((0, 0, 5, 2**32 - 1))

    def _step(self, request: sc_pb.Request) -> None:
        if self._rng.random() < 0.95:
            request.step.count = self._rng.choice(LOOPS)

    def _data(self, request: sc_pb.Request) -> None:
        request.data.ability_id = self._rng.random() < 0.5
        request.data.unit_type_id = self._rng.random() < 0.5

    def _start_replay(self, request: sc_pb.Request) -> None:
        rng, start = self._rng, request.start_replay
        start.replay_data = self._replay
        start.observed_player_id = rng.choice((1, 1, 0, 2))
        start.options.raw = start.options.score = rng.random() < 0.9
        start.record_replay = rng.random() < 0.5

    def _replay_info(self, request: sc_pb.Request) -> None:
        request.replay_info.replay_data = self._replay

    def _action(self, request: sc_pb.Request) -> None:
        rng = self._rng
        for _ in range(rng.randint(0, 4)):
            action = request.action.actions.add()
            match rng.randrange(20):
                case 0:
                    action.action_chat.message = rng.choice(("", "gl hf", "é" * 999))
                case 1:
                    action.action_raw.camera_move.center_world_space.x = rng.choice(NUMBERS)
                case 2:
                    action.action_raw.toggle_autocast.ability_id = self._ability()
                case 3 | 4:
                    self._click(rng.choice((action.action_feature_layer, action.action_render)))
                case 5 | 6:
                    self._press(action.action_ui)
                case _:
                    command = action.action_raw.unit_command
                    command.ability_id = self._ability()
                    command.unit_tags.extend(self._group())
                    command.queue_command = rng.random() < 0.4
                    if rng.random() < 0.6:
                        point = command.target_world_space_pos
                        point.x, point.y = self._place()
                    elif rng.random() < 0.7:
                        command.target_unit_tag = self._tag()

    def _click(self, spatial: spatial_pb.ActionSpatial) -> None:
        """An action on a screen."""
        rng = self._rng
        match rng.randrange(4):
            case 0:
                self._pixel(spatial.camera_move.center_minimap)
            case 1:
                self._pixel(spatial.unit_selection_point.selection_screen_coord)
                spatial.unit_selection_point.type = rng.randint(1, 4)
            case 2:
                for _ in range(rng.randint(0, 2)):
                    corners = spatial.unit_selection_rect.selection_screen_coord.add()
                    self._pixel(corners.p0)
                    self._pixel(corners.p1)
                spatial.unit_selection_rect.selection_add = rng.random() < 0.5
            case _:
                spatial.unit_command.ability_id = self._ability()
                spatial.unit_command.queue_command = rng.random() < 0.4
                if rng.random() < 0.6:
                    self._pixel(spatial.unit_command.target_screen_coord)
                elif rng.random() < 0.5:
                    self._pixel(spatial.unit_command.target_minimap_coord)

    def _pixel(self, point: common.PointI) -> None:
        point.x, point.y = self._rng.randint(-3, 40), self._rng.randint(-3, 40)

    def _press(self, ui: ui_pb.ActionUI) -> None:
        """A button of the user interface."""
        rng = self._rng
        match rng.randrange(7):
            case 0:
                ui.select_army.selection_add = rng.random() < 0.5
            case 1:
                ui.select_idle_worker.type = rng.randint(1, 4)
            case 2:
                ui.control_group.action = rng.randint(1, 5)
                ui.control_group.control_group_index = rng.randint(0, 10)
            case 3:
                ui.multi_panel.type = rng.randint(1, 4)
                ui.multi_panel.unit_index = rng.randint(-1, 12)
            case 4:
                ui.production_panel.unit_index = rng.randint(-1, 5)
            case 5:
                ui.select_larva.SetInParent()
            case _:
                ui.toggle_autocast.ability_id = self._ability()

    def _query(self, request: sc_pb.Request) -> None:
        rng, query = self._rng, request.query
        for _ in range(rng.randint(0, 3)):
            path = query.pathing.add()
            if rng.random() < 0.5:
                path.unit_tag = self._tag()
            else:
                path.start_pos.x, path.start_pos.y = self._place()
            path.end_pos.x, path.end_pos.y = self._place()
            query.abilities.add(unit_tag=self._tag())
            placement = query.placements.add(ability_id=self._ability())
            placement.target_pos.x, placement.target_pos.y = self._place()

    def _debug(self, request: sc_pb.Request) -> None:
        rng = self._rng
        for _ in range(rng.randint(1, 2)):
            command = request.debug.debug.add()
            kind = rng.random()
            if kind < 0.4 and len(self._tags) < MOST_UNITS:
                birth = command.create_unit
                birth.unit_type = rng.choice(UNIT_TYPES)
                birth.owner = rng.choice((1, 1, 2, 2, 16, 0, 17))
                birth.quantity = rng.randint(0, 4)
                birth.pos.x, birth.pos.y = self._place()
            elif kind < 0.6:
                command.kill_unit.tag.extend(self._tag() for _ in range(rng.randint(0, 3)))
            elif kind < 0.8:
                change = command.unit_value
                change.unit_tag = self._tag()
                change.unit_value = rng.choice(debug_pb.DebugSetUnitValue.UnitValue.values())
                change.value = rng.choice(NUMBERS)
            elif kind < 0.9:
                command.score.score = rng.choice(NUMBERS)
            elif kind < 0.92:
                command.end_game.end_result = rng.choice((1, 2))
            else:
                command.game_state = rng.randint(1, 12)

    def _ability(self) -> int:
        rng = self._rng
        if rng.random() < 0.02:
            return rng.randint(-9, 5000)
        return rng.choice(USUAL if rng.random() < 0.2 else ABILITIES)

    def _group(self) -> list[int]:
        if self._rng.random() < 0.05:
            return [self._tag(), self._tag()]
        return self._rng.sample(self._mine, self._rng.randint(1, len(self._mine)))

    def _tag(self) -> int:
        return self._rng.choice((*self._tags, 0, self._rng.getrandbits(64)))

    def _place(self) -> tuple[float, float]:
        """The place of an own unit, the own units' centre, a random place, or senseless numbers."""
        rng, places = self._rng, self._places
        match rng.randrange(10):
            case 0:
                return rng.choice(NUMBERS), rng.choice(NUMBERS)
            case 1 | 2 | 3 if places:
                return rng.choice(places)
            case 4 | 5 if places:
                xs, ys = zip(*places, strict=True)
                return sum(xs) / len(xs), sum(ys) / len(ys)
            case _:
                return rng.uniform(0, 64), rng.uniform(0, 64)


def is_harmless(frame: bytes) -> bool:
    """True if a damaged request keeps the rules in this module's docstring."""
    request = sc_pb.Request()
    try:
        request.ParseFromString(frame)
    except DecodeError:
        return True
    create, debug = request.create_game, request.debug.debug
    return not (
        request.HasField("quit")
        or (request.HasField("create_game") and not create.HasField("random_seed"))
        or create.realtime
        or request.start_replay.realtime
        or request.step.count > MOST_LOOPS
        or any(one.HasField("test_process") or one.create_unit.quantity > 4 for one in debug)
    )
