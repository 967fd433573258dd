"""Which episodes are chosen, and how their last transition is held."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from unittest.mock import create_autospec

import pytest

from sc2pool import QueuePair
from sc2pool.config import ReplayPolicy
from sc2pool.players.replays import Chooser, LastHeld
from sc2pool.tasks.player import Episode
from sc2pool.tasks.queue_pair import Transition


def chosen(policy: ReplayPolicy, *returns: float) -> list[tuple[bool, bool]]:
    chooser = Chooser(policy)
    return [chooser.choose(Episode(number), total) for number, total in enumerate(returns)]


def test_by_number():
    policy = ReplayPolicy(Path(), every=3, best=False)
    by_number = [by_number for by_number, _ in chosen(policy, *[0.0] * 7)]
    assert by_number == [number in (0, 3, 6) for number in range(7)]


def test_by_return():
    policy = ReplayPolicy(Path())
    returns = (-2.0, -2.0, math.nan, 5.0, 4.0, 5.5)
    best_so_far = (True, False, False, True, False, True)
    assert chosen(policy, *returns) == [(False, is_best) for is_best in best_so_far]


def test_neither():
    policy = ReplayPolicy(Path(), best=False)
    assert chosen(policy, 1.0, 2.0) == [(False, False)] * 2


@pytest.mark.parametrize("end", ["terminated", "truncated"])
def test_only_the_last_transition_is_held(end):
    pair = QueuePair.local()
    held = LastHeld(pair)
    for reward in (0.0, 1.5, -0.5):
        held.put(Transition(reward, reward, False, False, {}))
        assert pair.receive(1).observation == reward
    last = Transition("last", 2.0, end == "terminated", end == "truncated", {"a": 1})
    held.put(last)
    assert held.last == [last]
    assert held.episode_return == 3.0
    with pytest.raises(TimeoutError):
        pair.receive(0.0)


def test_actions_go_through():
    pair = QueuePair.local()
    pair.send(4)
    assert asyncio.run(LastHeld(pair).get_action()) == 4


def test_the_last_transitions_of_all_rows_are_held():
    pair = create_autospec(QueuePair, instance=True)
    pair.get_actions.return_value = [3, 4]
    held = LastHeld(pair)
    first = [Transition(row, 1.0 - row, False, False, {}) for row in range(2)]
    last = [Transition(row, 2.0 - row, True, False, {}) for row in range(2)]
    held.put_rows(first)
    held.put_rows(last)
    pair.put_rows.assert_called_once_with(first)
    assert held.last == last
    assert held.episode_return == 3.0, "the first row's"
    assert asyncio.run(held.get_actions()) == [3, 4]
    pair.put.assert_not_called()
