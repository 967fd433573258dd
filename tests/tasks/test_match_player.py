"""Tasks of two players: a match has a row for each side, or one row against an opponent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import Computer
from sc2pool.errors import FaultKind, GameFault, ObservationError, UserCodeError
from sc2pool.players.sc2_player import SC2Player
from sc2pool.tasks.marine_duel import (
    FOCUS_NEAREST,
    FOCUS_WEAKEST,
    HOLD,
    MarineDuel,
)
from tests.matches.playing import Against, Policy, Rows, always, play, player_of

pytestmark = pytest.mark.standin("StarCraft II has no map MarineDuel")

EPISODES = 6


def random_policy(seed: int) -> Policy:
    rng = np.random.default_rng(seed)
    return lambda _: int(rng.integers(MarineDuel.action_space.n))


@pytest.fixture(scope="module")
def episodes(standin_dir: Path) -> list[Rows]:
    """Episodes of two learners: the first one plays the script, the second one at random."""
    with player_of(standin_dir) as player:
        assert isinstance(player, SC2Player)
        assert player.rows == 2
        return play(player, [MarineDuel.scripted, random_policy(5)], seeds=range(EPISODES))


def test_two_learners(episodes):
    for one, two in episodes:
        assert len(one) == len(two) > 1
        for mine, theirs in zip(one, two, strict=True):
            assert MarineDuel.observation_space.contains(mine.observation)
            assert MarineDuel.observation_space.contains(theirs.observation)
            assert mine.reward == -theirs.reward
            assert mine[2:4] == theirs[2:4]
        assert [t.terminated or t.truncated for t in one[:-1]] == [False] * (len(one) - 1)
        assert "sc2pool.opponent" not in one[-1].info
        assert all(not t.info for t in one[:-1])
    assert len({one[0].observation.tobytes() for one, _ in episodes}) > 1, "as the seeds differ"


def test_the_scripted_player_beats_random_actions(episodes):
    results = [[row[-1].info["sc2pool.result"] for row in rows] for rows in episodes]
    assert results == [["win", "loss"]] * EPISODES


def test_both_sides_see_the_same_from_their_own_end(episodes):
    for one, two in episodes:
        for transition in (one[0], two[0]):
            observation = transition.observation
            assert observation[:2].tolist() == [1.0, 1.0]
            assert observation[3] < -0.2  # the marines are on their own side's half of the map
            assert observation[5] > 0.5  # the enemy's marines are on the other half of the map
        own, enemies = one[0].observation[7:32], two[0].observation[32:]
        assert sorted(own.reshape(5, 5)[:, 2]) == sorted(enemies.reshape(5, 5)[:, 2])


def test_masks(episodes):
    for transition in (one for rows in episodes for row in rows for one in row):
        mask, observation = transition.action_masks, transition.observation
        assert mask.shape == (MarineDuel.action_space.n,)
        own = observation[7:32].reshape(5, 5)
        healths = own[own[:, 2] > 0, 2]
        both = bool((observation[:2] > 0).all())
        assert mask[:3].tolist() == [both] * 3
        assert mask[3] == (both and len(healths) > 1 and healths[0] <= 18 / 45)
        assert mask[4:].all()


def test_a_tie_at_the_maps_time_limit(standin_dir):
    """The map and the task have the same limit, so the episode is truncated."""
    with player_of(standin_dir, step_mul=192) as player:
        ((one, two),) = play(player, [always(5 + 4), always(5 + 4)], seeds=[1])
    for row in (one, two):
        assert (row[-1].terminated, row[-1].truncated) == (False, True)
        assert row[-1].info == {"sc2pool.result": "tie"}
        assert sum(t.reward for t in row) == -1


class OneGivesUp(MarineDuel):
    def terminated(self) -> bool:
        return self.facing < 0 and self.lazy_observation.game_loop >= 40


def test_the_end_for_one_side_is_the_end_for_both(standin_dir):
    with player_of(standin_dir, OneGivesUp) as player:
        ((one, two),) = play(player, [always(HOLD)] * 2, seeds=[1])
    assert len(one) == len(two) == 6
    for row in (one, two):
        assert (row[-1].terminated, row[-1].truncated) == (True, False)
        assert row[-1].info == {"sc2pool.result": "undecided"}


class SaysWin(OneGivesUp):
    def result(self) -> Any:
        return "win"


def test_a_result_that_is_none_of_the_apis(standin_dir):
    told = r"SaysWin\.result\(\) .* returned 'win' of type str, expected None or a sc2api_pb2\.R"
    with player_of(standin_dir, SaysWin) as player, pytest.raises(ObservationError, match=told):
        play(player, [always(HOLD)] * 2, seeds=[1])


class Coloured(MarineDuel):
    colour = "grey"


def test_an_opponent_plays_the_other_side(standin_dir):
    """The only row's attributes are those of the learner's side, on either side of the match."""
    opponent = Against(always(FOCUS_NEAREST))
    with player_of(standin_dir, Coloured, opponent=opponent) as player:
        assert player.rows == 1
        assert player.target(0).colour == "grey", "before the first episode"
        player.attributes = ({"colour": "red"},)
        episodes = play(player, [always(FOCUS_WEAKEST)], seeds=range(4))
        assert player.target(0).observation.player_common.player_id == 2, "in episode 3"
        assert player.target(0).colour == "red"
        assert player.reset_kind() == "create"
    assert len(opponent.pairs) == 4
    for number, ((learner,), pair) in enumerate(zip(episodes, opponent.pairs, strict=True)):
        (theirs,) = pair.rows
        assert [t.reward for t in learner] == [-t.reward for t in theirs]
        assert learner[-1].terminated and theirs[-1].terminated
        results = {"win": "loss", "loss": "win", "tie": "tie"}
        result = learner[-1].info["sc2pool.result"]
        assert theirs[-1].info["sc2pool.result"] == results[result]
        assert learner[-1].info["sc2pool.opponent"] == f"number {number}"


def test_a_computer_plays_the_other_side_in_one_process(standin_dir):
    with player_of(standin_dir, opponent=Computer(difficulty=sc_pb.Hard)) as player:
        assert isinstance(player, SC2Player)
        assert player.rows == 1
        (((*_, last),),) = play(player, [always(FOCUS_NEAREST)], seeds=[1])
        assert len(player.match.games) == 1
    assert last.info["sc2pool.opponent"] == "computer-Hard"
    assert last.info["sc2pool.result"] in ("win", "loss", "tie")


def test_an_opponents_game_fault_is_user_code(standin_dir):
    """The opponent causes the error, not the game: a new game would not prevent it."""

    def fail(_: object) -> int:
        raise GameFault(FaultKind.BAD_REPLY, "not the match's game")

    with (
        player_of(standin_dir, opponent=Against(fail)) as player,
        pytest.raises(UserCodeError, match="the opponent 'number 0' raised GameFault"),
    ):
        play(player, [always(0)], seeds=[1])


def test_a_side_that_dies_is_named(standin_dir):
    with player_of(standin_dir) as player:
        steps: list[int] = []

        def kill_later(_: object) -> int:
            steps.append(1)
            if len(steps) == 3:
                psutil.Process(player.match.guest.process.pid).kill()
            return HOLD

        with pytest.raises(GameFault) as raised:
            play(player, [kill_later, always(HOLD)], seeds=[1])
        assert raised.value.detail.startswith("guest: the game ended: signal SIGKILL")
        assert player.exit_fault().detail.startswith("guest: ")
        assert len(player.exited_fds) == 2
        assert player.log_tail().startswith("host:\n")
