"""Messages of real games beside the stand-in's: which fields are set, and which are not.

The recorded games are the first moments of melee games, with python-sc2's interface.
"""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message
from s2clientprotocol import sc2api_pb2 as sc_pb

from tests.standin.sessions import against

PYTHON_SC2 = sc_pb.InterfaceOptions(
    raw=True,
    score=True,
    show_cloaked=True,
    show_burrowed_shadows=True,
    show_placeholders=True,
    raw_affects_selection=False,
    raw_crop_to_playable_area=False,
)
ONLY_RECORDED = (
    "observation.raw_data.units.mineral_contents",
    "observation.raw_data.units.vespene_contents",
    "observation.raw_data.units.rally_targets",
    "observation.raw_data.units.orders",
)
"""The economy, on maps that have one; and orders: recorded workers mine from the first loop."""
ONLY_OURS = ("observation.abilities",)
"""The abilities of all units; the real game lists those of the selected ones, and none is."""


def paths(message: Message, before: str = "") -> set[str]:
    """The names of all fields that are set, with those of the fields around them."""
    found: set[str] = set()
    for field, value in message.ListFields():
        found.add(before + field.name)
        if field.message_type is not None:
            for part in value if field.is_repeated else [value]:
                found |= paths(part, f"{before}{field.name}.")
    return found


def recorded(folder: Path, kind: str, message: Any) -> list[set[str]]:
    """The fields that are set in each recorded message of a kind."""
    files = sorted(folder.glob(f"*.{kind}.pb.xz"))
    if not files:
        pytest.skip(f"no recorded messages in {folder}")
    return [paths(message.FromString(lzma.decompress(file.read_bytes()))) for file in files]


@pytest.fixture
def game(offline):
    """A game against a computer, as python-sc2 begins one."""
    offline.start("DefeatRoaches", interface=PYTHON_SC2, player_setup=against(sc_pb.Easy))
    return offline


def test_a_maps_description_has_the_recorded_fields(recorded_dir, game):
    ours = paths(game.game_info())
    for theirs in recorded(recorded_dir, "game_info", sc_pb.ResponseGameInfo):
        assert ours == theirs


def test_a_first_observation_has_the_recorded_fields(recorded_dir, game):
    ours = paths(game.observed())
    for theirs in recorded(recorded_dir, "observation", sc_pb.ResponseObservation):
        assert [path for path in theirs - ours if not path.startswith(ONLY_RECORDED)] == []
        assert [path for path in ours - theirs if not path.startswith(ONLY_OURS)] == []
