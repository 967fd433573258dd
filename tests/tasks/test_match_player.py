"""Tasks of two players: both sides of a match as rows, or one of them against an opponent."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import psutil
import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import Computer
from sc2pool.errors import ConfigError, FaultKind, GameFault, UserCodeError
from sc2pool.tasks.duels.marine_duel import (
    FOCUS_NEAREST,
    FOCUS_WEAKEST,
    HOLD,
    MarineDuel,
)
from sc2pool.tasks.player import Episode
from sc2pool.tasks.players.match.match_player import MatchPlayer
from sc2pool.tasks.players.sc2_player import TaskPlayer
from sc2pool.tasks.queue_pair import QueuePair
from tests.matches.playing import Against, always, play, player_of
from tests.matches.recorded_rows import Policy

pytestmark = pytest.mark.standin("StarCraft II has no map MarineDuel")


def random_policy(seed: int) -> Policy:
    rng = np.random.default_rng(seed)
    return lambda _: int(rng.integers(MarineDuel.action_space.n))


def test_two_learners(standin_dir):
    with player_of(standin_dir) as player:
        assert isinstance(player, MatchPlayer)
        assert player.rows == 2
        episodes = play(player, [random_policy(1), random_policy(2)], seeds=range(4))
        assert player.reset_kind() == "create"
        first, second = player.target(0), player.target(1)
        assert first.observation.player_common.player_id == 1
        assert second.observation.player_common.player_id == 2
    for one, two in episodes:
        assert len(one) == len(two) > 1
        for mine, theirs in zip(one, two, strict=True):
            assert MarineDuel.observation_space.contains(mine.observation)
            assert MarineDuel.observation_space.contains(theirs.observation)
            if mine.info.get("sc2pool.result") != "tie":
                assert mine.reward == -theirs.reward
            assert mine[2:4] == theirs[2:4]
        assert [t.terminated or t.truncated for t in one[:-1]] == [False] * (len(one) - 1)
        results = {one[-1].info["sc2pool.result"], two[-1].info["sc2pool.result"]}
        assert results in ({"win", "loss"}, {"tie"})
        assert "sc2pool.opponent" not in one[-1].info
        assert all(not t.info for t in one[:-1])


def test_both_sides_see_the_same_from_their_own_end(standin_dir):
    with player_of(standin_dir) as player:
        episodes = play(player, [always(HOLD)] * 2, seeds=range(6))
        assert {player.target(0).facing, player.target(1).facing} == {1.0, -1.0}
    for one, two in episodes:
        for transition in (one[0], two[0]):
            observation = transition.observation
            assert observation[:2].tolist() == [1.0, 1.0]
            assert observation[3] < -0.2  # the own end
            assert observation[5] > 0.5  # the enemy's
        own, enemies = one[0].observation[7:32], two[0].observation[32:]
        assert sorted(own.reshape(5, 5)[:, 2]) == sorted(enemies.reshape(5, 5)[:, 2])


def test_the_same_seed_twice_gives_the_same_bytes(standin_dir):
    def observations() -> list[bytes]:
        with player_of(standin_dir) as player:
            ((one, two),) = play(player, [random_policy(3), random_policy(4)], seeds=[11])
            return [t.observation.tobytes() for t in (*one, *two)]

    first = observations()
    assert first == observations()
    assert len(set(first)) > len(first) // 2


def test_the_time_limit_truncates_both(standin_dir):
    with player_of(standin_dir, max_loops=80) as player:
        ((one, two),) = play(player, [always(HOLD)] * 2, seeds=[1])
    assert len(one) == len(two) == 11
    for row in (one, two):
        assert (row[-1].terminated, row[-1].truncated) == (False, True)
        assert row[-1].info == {"sc2pool.result": "undecided"}


class Patient(MarineDuel):
    """Its players hold until the map's own time limit."""

    max_loops: ClassVar[int | None] = None


@pytest.mark.parametrize("task", [MarineDuel, Patient])
def test_a_tie_at_the_maps_time_limit(standin_dir, task):
    """It is the task's own limit too, so it truncates."""
    with player_of(standin_dir, task, step_mul=192) as player:
        ((one, two),) = play(player, [always(5 + 4), always(5 + 4)], seeds=[1])
    for row in (one, two):
        limited = task is MarineDuel
        assert (row[-1].terminated, row[-1].truncated) == (not limited, limited)
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


def test_an_opponent_plays_the_other_side(standin_dir):
    opponent = Against(always(FOCUS_NEAREST))
    with player_of(standin_dir, opponent=opponent) as player:
        assert player.rows == 1
        episodes = play(player, [always(FOCUS_WEAKEST)], seeds=range(4))
        assert player.target(0).observation.player_common.player_id == 2  # episode 3
    assert len(opponent.pairs) == 4
    for number, ((learner,), pair) in enumerate(zip(episodes, opponent.pairs, strict=True)):
        (theirs,) = pair.rows
        assert [t.reward for t in learner] == [-t.reward for t in theirs]
        assert learner[-1].terminated and theirs[-1].terminated
        results = {"win": "loss", "loss": "win", "tie": "tie"}
        result = learner[-1].info["sc2pool.result"]
        assert theirs[-1].info["sc2pool.result"] == results[result]
        assert learner[-1].info["sc2pool.opponent"] == f"number {number}"


def test_the_learner_plays_both_sides_in_turns(standin_dir):
    class Numbered(MarineDuel):
        def info(self) -> dict[str, Any]:
            return {"player": self.observation.player_common.player_id}

    with player_of(standin_dir, Numbered, opponent=Against(always(HOLD))) as player:
        episodes = play(player, [always(FOCUS_NEAREST)], seeds=[1, 1, 1], first=3)
    assert [learner[0].info["player"] for (learner,) in episodes] == [2, 1, 2]


def test_a_computer_plays_the_other_side_in_one_process(standin_dir):
    with player_of(standin_dir, opponent=Computer(difficulty=sc_pb.Hard)) as player:
        assert isinstance(player, TaskPlayer)
        assert player.rows == 1
        (((*_, last),),) = play(player, [always(FOCUS_NEAREST)], seeds=[1])
    assert last.info["sc2pool.opponent"] == "computer-Hard"
    assert last.info["sc2pool.result"] in ("win", "loss", "tie")


class Broken(Against):
    def __init__(self, error: Exception, where: str) -> None:
        super().__init__(self._fail)
        self._error, self._where = error, where

    def _fail(self, _: object) -> int:
        raise self._error

    def begin(self, episode: Episode) -> tuple[str, QueuePair]:
        if self._where == "begin":
            raise self._error
        return super().begin(episode)


@pytest.mark.parametrize("where", ["begin", "play"])
def test_an_opponent_that_raises_is_user_code(standin_dir, where):
    error = ZeroDivisionError("policy")
    with (
        player_of(standin_dir, opponent=Broken(error, where)) as player,
        pytest.raises(ZeroDivisionError) as raised,
    ):
        play(player, [always(0)], seeds=[1])
    name = "the opponent" if where == "begin" else "the opponent 'number 0'"
    assert raised.value.__notes__ == [f"{name} raised it, not the task"]


def test_an_opponents_game_fault_is_user_code(standin_dir):
    """The pool would replace the games, and the next opponent would raise again."""
    fault = GameFault(FaultKind.BAD_REPLY, "not the match's game")
    with (
        player_of(standin_dir, opponent=Broken(fault, "play")) as player,
        pytest.raises(UserCodeError, match="the opponent 'number 0' raised GameFault"),
    ):
        play(player, [always(0)], seeds=[1])


def test_attributes_are_of_a_row(standin_dir):
    class Coloured(MarineDuel):
        colour = "grey"

    with player_of(standin_dir, Coloured) as player:
        assert player.target(1).colour == "grey"
        player.attributes = ({"colour": "red"}, {"colour": "blue"})
        play(player, [always(HOLD)] * 2, seeds=[1])
        assert [player.target(row).colour for row in (0, 1)] == ["red", "blue"]
    opponent = Against(always(HOLD))
    with player_of(standin_dir, Coloured, opponent=opponent) as player:
        player.attributes = ({"colour": "red"},)
        play(player, [always(HOLD)], seeds=[1], first=1)
        assert player.target(0).colour == "red"


def test_the_scripted_player_beats_random_actions(standin_dir):
    with player_of(standin_dir) as player:
        episodes = play(player, [MarineDuel.scripted, random_policy(5)], seeds=range(10))
    assert [one[-1].info["sc2pool.result"] for one, _ in episodes] == ["win"] * 10


def test_masks(standin_dir):
    with player_of(standin_dir) as player:
        episodes = play(player, [always(FOCUS_NEAREST), always(HOLD)], seeds=[1])
    ((one, _),) = episodes
    for transition in one:
        mask, observation = transition.action_masks, transition.observation
        assert mask.shape == (MarineDuel.action_space.n,)
        own = observation[7:32].reshape(5, 5)
        healths = own[own[:, 2] > 0, 2]
        both = bool((observation[:2] > 0).all())
        assert mask[:3].tolist() == [both] * 3
        assert mask[3] == (both and len(healths) > 1 and healths[0] <= 18 / 45)
        assert mask[4:].all()


class WrongMap(MarineDuel):
    map_name: ClassVar[str] = "DefeatRoaches"


def test_a_map_for_one_player(standin_dir):
    with (
        player_of(standin_dir, WrongMap) as player,
        pytest.raises(ConfigError, match="map for 1 participant, not for 2"),
    ):
        play(player, [always(0)] * 2, seeds=[1])


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
