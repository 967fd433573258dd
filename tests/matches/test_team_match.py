"""Matches of two teams: SMAC's duels, on two games that play each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

from sc2pool.errors import ActionError, GameFault
from sc2pool.players.sc2_player import SC2Player
from sc2pool.tasks.player import Episode
from sc2pool.tasks.queue_pair import QueuePair, Transition
from sc2pool.tasks.registry import resolve_task
from sc2pool.tasks.task import row_space
from sc2pool.tasks.teams.battle_task import smac_duel
from sc2pool.tasks.teams.scenarios import Rules
from tests.matches.playing import Against, RecordedRows, always, play, player_of

pytestmark = pytest.mark.standin("StarCraft II has no maps of SMAC's duels")

MARINES = smac_duel("3m")
STOP, N = 1, 3


def flags(rows: Sequence[Sequence[Transition]]) -> list[Any]:
    return [[(t.terminated, t.truncated) for t in row] for row in rows]


@pytest.mark.parametrize("name", ["2s3z_duel", "MMM_duel", "bane_vs_bane_duel"])
def test_two_teams_that_learn(standin_dir, name):
    task = resolve_task(name)
    n = len(task.agents)
    with player_of(standin_dir, task) as player:
        assert isinstance(player, SC2Player)
        assert player.rows == 2 * n
        player.attributes = tuple({"row": row} for row in range(2 * n))
        (rows,) = play(player, [task.scripted] * 2 * n, seeds=[1])
        targets = [player.target(row) for row in range(2 * n)]
    assert targets[:n] == [targets[0]] * n and targets[n:] == [targets[n]] * n
    assert targets[0] is not targets[n]
    assert [one.game.player_id for one in (targets[0], targets[n])] == [1, 2]
    assert [one.row for one in (targets[0], targets[n])] == [n - 1, 2 * n - 1], "set on any row"
    for row in rows:
        assert len(row) == len(rows[0]) > 5
        assert all(task.observation_space.contains(t.observation) for t in row)
        assert all(t.action_masks.shape == (task.action_space.n,) for t in row)
    assert flags(rows) == [flags(rows)[0]] * 2 * n
    of_first, of_second = ([t.observation for t in row] for row in (rows[0], rows[n]))
    assert np.array_equal(of_first[0], of_second[0]), "both begin in the same way"
    for side in (rows[:n], rows[n:]):
        assert len({tuple(t.reward for t in row) for row in side}) == 1, "it is the team's"
    last = [rows[0][-1].info, rows[n][-1].info]
    assert last[0]["dead_allies"] == last[1]["dead_enemies"]
    assert last[1]["dead_allies"] == last[0]["dead_enemies"]
    assert {one["sc2pool.result"] for one in last} in ({"win", "loss"}, {"tie"}, {"undecided"})


def test_smacs_rewards_are_of_each_side(standin_dir):
    with player_of(standin_dir, MARINES) as player:
        (rows,) = play(player, [*[MARINES.scripted] * N, *[always(STOP)] * N], seeds=[3])
    assert sum(t.reward for t in rows[0]) == pytest.approx(20)
    assert sum(t.reward for t in rows[N]) == 0
    assert rows[0][-1].info["battle_won"] and not rows[N][-1].info["battle_won"]
    assert [rows[i][-1].info["sc2pool.result"] for i in (0, N)] == ["win", "loss"]


class Shared(MARINES):
    shares_state = True


def test_a_state_is_of_each_side(standin_dir):
    with player_of(standin_dir, Shared, max_loops=16) as player:
        assert player.observation_space == row_space(Shared)
        (rows,) = play(player, [always(4)] * 2 * N, seeds=[1])
    for row in rows:
        assert row_space(Shared).contains(row[0].observation)
    for side in (rows[:N], rows[N:]):
        first = side[0][0].observation["state"]
        assert all(np.array_equal(row[0].observation["state"], first) for row in side)
    assert np.array_equal(rows[0][0].observation["state"], rows[N][0].observation["state"])


def test_an_opponent_plays_all_agents_of_the_other_side(standin_dir):
    """The opponent's agents must not get the state that the learner's rows share."""
    opponent = Against(*[always(STOP)] * N)
    learner = [lambda seen: MARINES.scripted(seen["observation"])] * N
    with player_of(standin_dir, Shared, opponent=opponent) as player:
        assert player.rows == N
        episodes = play(player, learner, seeds=[1, 2])
        assert player.target(0).game.player_id == 2, "in episode 1"
    for number, (rows, pair) in enumerate(zip(episodes, opponent.pairs, strict=True)):
        assert len(rows) == len(pair.rows) == N
        assert flags(rows) == flags(pair.rows)
        assert rows[0][-1].info["sc2pool.result"] == "win"
        assert rows[0][-1].info["sc2pool.opponent"] == f"number {number}"
        assert pair.rows[0][-1].info["sc2pool.result"] == "loss"
        assert MARINES.observation_space.contains(pair.rows[0][0].observation)


class TooMany(RecordedRows):
    async def get_actions(self) -> Sequence[Any]:
        return [*await super().get_actions(), STOP]


class OneTooMany:
    """An opponent that returns one action too many."""

    def begin(self, _: Episode) -> tuple[str, QueuePair]:
        return "many", TooMany([always(STOP)] * N)


def test_an_opponent_gives_an_action_for_each_agent(standin_dir):
    with (
        player_of(standin_dir, MARINES, opponent=OneTooMany()) as player,
        pytest.raises(ActionError, match="got 4 actions for 3 agents") as raised,
    ):
        play(player, [always(STOP)] * N, seeds=[1])
    assert raised.value.__notes__ == ["the opponent 'many' raised it, not the task"]


def test_the_heuristic_plays_both_sides(standin_dir):
    task = smac_duel("3m", Rules(heuristic_ai=True))
    with player_of(standin_dir, task) as player:
        (rows,) = play(player, [always(STOP)] * 2 * N, seeds=[1])
    assert rows[0][-1].terminated
    assert {rows[i][-1].info["sc2pool.result"] for i in (0, N)} in ({"win", "loss"}, {"tie"})


class BelongsToOthers(MARINES):
    map_name: ClassVar[str] = "MarineDuel"


def test_a_map_without_the_units(standin_dir):
    with (
        player_of(standin_dir, BelongsToOthers) as player,
        pytest.raises(GameFault, match="has not the units of the scenario '3m'"),
    ):
        play(player, [always(STOP)] * 2 * N, seeds=[1])
