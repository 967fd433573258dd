"""The modes of self-play."""

from __future__ import annotations

import pytest

from sc2pool.cli.training.settings.self_play import MODES, SHARED, choose_self_play
from sc2pool.errors import ConfigError
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from sc2pool.tasks.opponents.snapshots import RULES


class Duel(MoveToBeacon):
    players = 2


def test_there_is_a_mode_for_each_rule():
    assert (SHARED, *RULES) == MODES


@pytest.mark.parametrize(
    ("given", "earlier", "mode"),
    [
        (None, None, "shared"),
        (None, "uniform", "uniform"),
        ("latest", "uniform", "latest"),
        ("shared", None, "shared"),
    ],
)
def test_a_task_of_two_players_always_has_one(given, earlier, mode):
    assert choose_self_play(given, earlier, Duel) == mode


def test_a_task_of_one_player_has_none():
    assert choose_self_play(None, None, MoveToBeacon) == ""
    with pytest.raises(ConfigError, match="--self-play latest: it needs a task of two players, an"):
        choose_self_play("latest", None, MoveToBeacon)
