"""Matches of two teams: SMAC's duels, on two games that play each other."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, ClassVar

import cloudpickle
import numpy as np
import psutil
import pytest

from sc2pool import SubprocSC2VecEnv
from sc2pool.errors import ActionError, ConfigError, GameFault, UserCodeError
from sc2pool.tasks.player import Episode
from sc2pool.tasks.players.match.match_player import MatchPlayer
from sc2pool.tasks.queue_pair import QueuePair, Transition
from sc2pool.tasks.registry import resolve
from sc2pool.tasks.teams.smac.duel import smac_duel
from sc2pool.tasks.teams.smac.rules import ZERO_SUM, Rules
from sc2pool.tasks.teams.team_task import row_space
from tests.matches.playing import play, player_of
from tests.matches.recorded_rows import Policy, RecordedRows

pytestmark = pytest.mark.standin("StarCraft II has no maps of SMAC's duels")
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not import this file

MARINES = smac_duel("3m")
STOP, N = 1, 3


def scripted(task: Any = MARINES) -> Policy:
    return task.scripted


def random_policies(n: int, seed: int, actions: int = 9) -> list[Policy]:
    rng = np.random.default_rng(seed)
    return [lambda _: int(rng.integers(actions)) for _ in range(n)]


def always(action: int) -> Policy:
    return lambda _: action


class Against:
    """An opponent that plays policies, and keeps its transitions."""

    def __init__(self, policies: Sequence[Policy]) -> None:
        self._policies = policies
        self.pairs: list[RecordedRows] = []

    def begin(self, episode: Episode) -> tuple[str, QueuePair]:
        self.pairs.append(RecordedRows(self._policies))
        return f"number {episode.number}", self.pairs[-1]


def flags(rows: Sequence[Sequence[Transition]]) -> list[Any]:
    return [[(t.terminated, t.truncated) for t in row] for row in rows]


@pytest.mark.parametrize("name", ["3m_duel", "2s3z_duel", "MMM_duel", "bane_vs_bane_duel"])
def test_two_teams_that_learn(standin_dir, name):
    task = resolve(name)
    n = len(task.agents)
    with player_of(standin_dir, task) as player:
        assert isinstance(player, MatchPlayer)
        assert player.rows == 2 * n
        (rows,) = play(player, [scripted(task)] * 2 * n, seeds=[1])
        targets = [player.target(row) for row in range(2 * n)]
    assert targets[:n] == [targets[0]] * n and targets[n:] == [targets[n]] * n
    assert targets[0] is not targets[n]
    assert [one.game.player_id for one in (targets[0], targets[n])] == [1, 2]
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


class Told(MARINES):
    """Its info has the loop, and every unit as this side's game shows it."""

    max_loops: ClassVar[int | None] = 100_000

    def info(self) -> dict[str, Any]:
        units = self.observation.raw_data.units
        shown = {u.tag: (u.owner, u.unit_type, u.pos.x, u.pos.y, u.health) for u in units}
        own = {u.tag for u in units if u.alliance == 1}
        return {"loop": self.lazy_observation.game_loop, "units": shown, "own": own}


def test_loops_are_equal_and_units_crosswise(standin_dir):
    """Over whole battles of random orders."""
    steps = 0
    with player_of(standin_dir, Told, max_loops=2000) as player:
        policies = [*random_policies(N, 1), *random_policies(N, 2)]
        episodes = play(player, policies, seeds=range(2))
    for rows in episodes:
        for first, second in zip(rows[0], rows[N], strict=True):
            assert first.info["loop"] == second.info["loop"]
            assert first.info["units"] == second.info["units"]
            assert not first.info["own"] & second.info["own"]
            assert first.info["own"] | second.info["own"] == set(first.info["units"])
            steps += 1
    assert steps > 250


def test_the_same_seed_twice_gives_the_same_bytes(standin_dir):
    def played() -> list[bytes]:
        with player_of(standin_dir, MARINES) as player:
            policies = [*[scripted()] * N, *random_policies(N, 2)]
            (rows,) = play(player, policies, seeds=[11])
        return [t.observation.tobytes() + np.float64(t.reward).tobytes() for r in rows for t in r]

    first = played()
    assert first == played()
    assert len(set(first)) > len(first) // 2


def test_another_seed_is_another_battle(standin_dir):
    with player_of(standin_dir, MARINES) as player:
        one, other = play(player, [scripted()] * 2 * N, seeds=[1, 2])
    assert [t.observation.tobytes() for t in one[0]] != [t.observation.tobytes() for t in other[0]]


def test_zero_sum(standin_dir):
    with player_of(standin_dir, smac_duel("3m", ZERO_SUM)) as player:
        (rows,) = play(player, [*[scripted()] * N, *[always(STOP)] * N], seeds=[3])
    rewards = [[t.reward for t in row] for row in (rows[0], rows[N])]
    assert sum(rewards[0]) > 10, "those that stand still lose"
    np.testing.assert_allclose(rewards[0], np.negative(rewards[1]), atol=1e-9)


def test_smacs_rewards_are_of_each_side(standin_dir):
    with player_of(standin_dir, MARINES) as player:
        (rows,) = play(player, [*[scripted()] * N, *[always(STOP)] * N], seeds=[3])
    assert sum(t.reward for t in rows[0]) == pytest.approx(20)
    assert sum(t.reward for t in rows[N]) == 0
    assert rows[0][-1].info["battle_won"] and not rows[N][-1].info["battle_won"]
    assert [rows[i][-1].info["sc2pool.result"] for i in (0, N)] == ["win", "loss"]


def test_the_time_limit_truncates_all(standin_dir):
    with player_of(standin_dir, MARINES) as player:
        (rows,) = play(player, [always(STOP)] * 2 * N, seeds=[1])
    assert [len(row) for row in rows] == [61] * 2 * N
    for row in rows:
        assert (row[-1].terminated, row[-1].truncated) == (False, True)
        assert row[-1].info["sc2pool.result"] == "undecided"


class Shared(MARINES):
    shares_state = True


def test_a_state_is_of_each_side_and_not_the_opponents(standin_dir):
    with player_of(standin_dir, Shared) as player:
        assert player.observation_space == row_space(Shared)
        (rows,) = play(player, [always(4)] * 2 * N, seeds=[1])
    for row in rows:
        assert row_space(Shared).contains(row[0].observation)
    for side in (rows[:N], rows[N:]):
        first = side[0][0].observation["state"]
        assert all(np.array_equal(row[0].observation["state"], first) for row in side)
    assert np.array_equal(rows[0][0].observation["state"], rows[N][0].observation["state"])
    opponent = Against([always(STOP)] * N)
    with player_of(standin_dir, Shared, opponent=opponent, max_loops=16) as player:
        play(player, [always(STOP)] * N, seeds=[1])
    assert Shared.observation_space.contains(opponent.pairs[0].rows[0][0].observation)


def test_an_opponent_plays_all_agents_of_the_other_side(standin_dir):
    opponent = Against([always(STOP)] * N)
    with player_of(standin_dir, MARINES, opponent=opponent) as player:
        assert player.rows == N
        episodes = play(player, [scripted()] * N, seeds=[1, 2])
        assert player.target(0).game.player_id == 2, "in episode 1"
    for number, (rows, pair) in enumerate(zip(episodes, opponent.pairs, strict=True)):
        assert len(rows) == len(pair.rows) == N
        assert flags(rows) == flags(pair.rows)
        assert rows[0][-1].info["sc2pool.result"] == "win"
        assert rows[0][-1].info["sc2pool.opponent"] == f"number {number}"
        assert pair.rows[0][-1].info["sc2pool.result"] == "loss"


@pytest.fixture
def make_env(standin_dir):
    envs = []

    def make(task: Any = "3m_duel", **keywords: Any) -> SubprocSC2VecEnv:
        envs.append(SubprocSC2VecEnv(task=task, game=standin_dir, **{"seed": 5, "n": 2} | keywords))
        return envs[-1]

    yield make
    for env in envs:
        env.close()


class Chooser:
    """The first action that is possible, by SB3's interface; checks that it gets one agent's."""

    observation_space = MARINES.observation_space
    action_space = MARINES.action_space

    def predict(
        self, observation, state=None, episode_start=None, deterministic=False, action_masks=None
    ):
        assert observation.shape == (30,)
        assert action_masks.shape == (9,)
        assert (state is None) == bool(episode_start[0])
        return np.array(int(np.argmax(action_masks))), (state or 0) + 1


@pytest.mark.parametrize(
    ("opponent", "name"), [(MARINES.scripted, "scripted"), (Chooser(), "Chooser")]
)
def test_opponents_of_a_pool(make_env, opponent, name):
    env = make_env(n=1, opponent=opponent)
    assert env.num_envs == N
    seen = env.reset()
    results: list[str] = []
    while len(results) < 2 * N:
        seen, _, dones, infos = env.step([MARINES.scripted(one) for one in seen])
        assert dones.all() == dones.any()
        for info in infos:
            if "sc2pool.result" in info:
                assert info["sc2pool.opponent"] == name
                results.append(info["sc2pool.result"])
    if name == "Chooser":
        assert set(results) == {"win"}


def test_masks_and_attributes_are_of_each_row(make_env):
    env = make_env(n=1)
    env.reset()
    masks = np.stack(env.env_method("action_masks"))
    assert masks.shape == (2 * N, 9)
    assert np.array_equal(masks[:N], masks[N:])
    env.set_attr("colour", "red", indices=[1])
    env.set_attr("colour", "blue", indices=[4])
    assert env.get_attr("colour") == ["red"] * N + ["blue"] * N


def test_a_killed_side_is_one_truncation_in_every_row(make_env):
    """A killed host; `faults/pools/test_matches.py` kills and stops each process of a match."""
    env = make_env()
    first = env.reset()
    quiet = [env.step([STOP] * 4 * N) for _ in range(3)]
    instance = env.stats().instances[0]
    psutil.Process(instance.pid).kill()
    _, rewards, dones, infos = env.step([STOP] * 4 * N)
    assert dones.tolist() == [True] * 2 * N + [False] * 2 * N
    assert rewards[: 2 * N].tolist() == [0.0] * 2 * N
    for row, info in enumerate(infos[: 2 * N]):
        assert info["TimeLimit.truncated"] and info["sc2pool.synthetic"]
        assert info["sc2pool.fault"]["detail"].startswith("host: ")
        assert np.array_equal(info["terminal_observation"], quiet[-1][0][row])
    assert not any("sc2pool.fault" in info for info in infos[2 * N :])
    seen, _, dones, infos = env.step([STOP] * 4 * N)
    assert not dones.any() and not any("sc2pool.fault" in info for info in infos)
    assert seen.shape == first.shape


def test_a_side_that_dies_is_named(standin_dir):
    with player_of(standin_dir, MARINES) as player:
        steps: list[int] = []

        def kill_later(_: object) -> int:
            steps.append(1)
            if len(steps) == 7:
                psutil.Process(player.match.guest.process.pid).kill()
            return STOP

        with pytest.raises(GameFault) as raised:
            play(player, [kill_later] * 2 * N, seeds=[1])
        assert raised.value.detail.startswith("guest: ")


def test_the_heuristic_plays_both_sides(standin_dir):
    task = smac_duel("3m", Rules(heuristic_ai=True))
    with player_of(standin_dir, task) as player:
        (rows,) = play(player, [always(STOP)] * 2 * N, seeds=[1])
    assert rows[0][-1].terminated
    assert {rows[i][-1].info["sc2pool.result"] for i in (0, N)} in ({"win", "loss"}, {"tie"})


def test_a_trained_policy_plays_itself(make_env, tmp_path):
    from sb3_contrib import MaskablePPO

    env = make_env(n=1)
    model = MaskablePPO("MlpPolicy", env, n_steps=8, batch_size=24, device="cpu").learn(48)
    model.save(tmp_path / "early.zip")
    env.close()
    against = make_env(n=1, opponent=tmp_path / "early.zip", max_loops=40)
    assert against.num_envs == N
    against.reset()
    dones = np.zeros(N, bool)
    while not dones.any():
        masks = np.stack(against.env_method("action_masks"))
        _, _, dones, infos = against.step(masks.argmax(axis=1))
    assert infos[0]["sc2pool.opponent"] == "early"


def wrong_action(_: Any) -> int:
    return 99


class OneTooMany:
    """An opponent that gives an action too many."""

    def begin(self, _: Episode) -> tuple[str, QueuePair]:
        return "many", RecordedRows([always(STOP)] * (N + 1))


@pytest.mark.parametrize(
    ("opponent", "error", "message"),
    [
        (wrong_action, (ActionError, UserCodeError), "99"),
        (OneTooMany(), UserCodeError, "many"),
    ],
)
def test_opponents_that_fail(make_env, opponent, error, message):
    env = make_env(n=1, opponent=opponent)
    with pytest.raises(error, match=message):
        env.reset()
        env.step([STOP] * N)
    assert psutil.Process().children(recursive=True) == []


class WrongMap(MARINES):
    map_name: ClassVar[str] = "3m"


class BelongsToOthers(MARINES):
    map_name: ClassVar[str] = "MarineDuel"


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (WrongMap, "map for 1 participant, not for 2"),
        (BelongsToOthers, "has not the units of the scenario '3m'"),
    ],
)
def test_a_wrong_map(make_env, task, message):
    env = make_env(task, n=1)
    with pytest.raises(ConfigError, match=message):
        env.reset()
    assert psutil.Process().children(recursive=True) == []
