"""Whose error it is that was raised while the other side decided."""

from __future__ import annotations

import pytest

from sc2pool.errors import FaultKind, GameFault, UserCodeError
from sc2pool.players.sides import blamed_on_opponent

FAULT = GameFault(FaultKind.BAD_REPLY, "not the match's game")


@pytest.mark.parametrize(
    ("name", "who"), [(None, "the opponent"), ("number 0", "the opponent 'number 0'")]
)
def test_an_exception_says_that_the_opponent_raised_it(name, who):
    error = ZeroDivisionError("policy")
    with pytest.raises(ZeroDivisionError) as raised, blamed_on_opponent(name):
        raise error
    assert raised.value is error
    assert error.__notes__ == [f"{who} raised it, not the task"]


def test_a_game_fault_is_the_games_only_if_the_opponent_plays_on_one():
    with pytest.raises(GameFault) as raised, blamed_on_opponent("bot", has_game=True):
        raise FAULT
    assert raised.value is FAULT
    with (
        pytest.raises(UserCodeError, match="the opponent 'bot' raised GameFault"),
        blamed_on_opponent("bot"),
    ):
        raise FAULT
