"""Tests envs of several rows in a whole pool: every row must get exactly its own transitions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import cloudpickle
import numpy as np
import psutil
import pytest
from gymnasium import spaces

from sc2pool.config import PoolConfig
from sc2pool.errors import ActionError, ConfigError
from sc2pool.pool.pool import Pool
from sc2pool.tasks.player import Player
from sc2pool.tasks.queue_pair import Transition

# ---- a player of several rows, without a game ----------------------------------------------------


cloudpickle.register_pickle_by_value(sys.modules[__name__])

MOST = 1000
BOX = spaces.Box(-1, MOST, (4,), np.float64)
DISCRETE = spaces.Discrete(MOST * MOST)
DICT = spaces.Dict(
    {
        "who": spaces.Tuple((spaces.Discrete(MOST), spaces.Discrete(MOST))),
        "where": spaces.Box(-1, MOST, (2, 2), np.float32),
        "bits": spaces.MultiBinary(4),
    }
)
ACTION = spaces.Discrete(MOST)
ACTIONS = spaces.Box(-1, MOST, (2,), np.float32)
ACTION_DICT = spaces.Dict({"kind": spaces.Discrete(MOST), "at": spaces.Box(-1, MOST, (2,))})


def shown(space: spaces.Space, episode: int, row: int, step: int, action: int) -> Any:
    """The observation of this row."""
    if space == BOX:
        return np.array([episode, row, step, action], np.float64)
    if space == DISCRETE:
        return np.int64(row * MOST + action)
    return {
        "who": (np.int64(episode), np.int64(row)),
        "where": np.array([[episode, row], [step, action]], np.float32),
        "bits": np.array([row % 2, row > 1, step % 2, action % 2], np.int8),
    }


def reward_of(row: int, step: int, action: int) -> float:
    """The reward of this row."""
    return row + step / 8 + action / 1024


def mask_of(row: int, step: int) -> np.ndarray:
    """The action mask of this row."""
    return np.arange(MOST) % (row + step + 2) == 0


def number_in(action: Any) -> int:
    """The number in an action, which may be of any of the action spaces."""
    if isinstance(action, dict):
        return int(action["kind"])
    return int(np.asarray(action).flat[0])


@dataclass
class Seat:
    """The object of one row; `get_attr` and similar calls act on it."""

    row: int
    level: int = 0

    def twice(self, number: int) -> tuple[int, int]:
        return self.row, 2 * number


@dataclass(frozen=True)
class RowsSpec:
    """A player of several rows, as data.

    Attributes:
        rows: the number of rows.
        observation_space: one of `BOX`, `DISCRETE` and `DICT`.
        action_space: one of `ACTION`, `ACTIONS` and `ACTION_DICT`.
        length: the number of steps of an episode.
        masked: whether transitions have masks.
    """

    rows: int = 2
    observation_space: spaces.Space = field(default_factory=lambda: BOX)
    action_space: spaces.Space = field(default_factory=lambda: ACTION)
    length: int = 5
    masked: bool = False

    def player(self) -> Player:
        return RowsPlayer(self)


class RowsPlayer(Player):
    """Plays episodes of a fixed length; terminates even episodes, and truncates odd episodes.

    Row r of step s in episode e shows (e, r, s, the row's action), in the structure of its space,
    so a test knows every value. The class is sent to the workers by value.
    """

    strict = True
    metadata = {"render_modes": []}  # noqa: RUF012
    render_mode = None

    def __init__(self, spec: RowsSpec) -> None:
        self._spec = spec
        self.rows = spec.rows
        self.observation_space = spec.observation_space
        self.action_space = spec.action_space
        self._seats = [Seat(row) for row in range(spec.rows)]

    async def play(self, episode, pair) -> None:
        for seat, attributes in zip(self._seats, self.attributes, strict=True):
            vars(seat).update(attributes)
        actions = [0] * self.rows
        pair.put_rows([self._transition(episode.number, row, 0, 0) for row in range(self.rows)])
        for step in range(1, self._spec.length + 1):
            actions = [number_in(action) for action in await pair.get_actions()]
            transitions = [
                self._transition(episode.number, row, step, action)
                for row, action in enumerate(actions)
            ]
            pair.put_rows(transitions)

    def _transition(self, episode: int, row: int, step: int, action: int) -> Transition:
        spec = self._spec
        observation = shown(spec.observation_space, episode, row, step, action)
        over = step == spec.length
        ends = [over and episode % 2 == 0, over and episode % 2 == 1]
        info = {"row": row, "step": step} if step % 3 == 0 and row == spec.rows - 1 else {}
        mask = mask_of(row, step) if spec.masked else None
        reward = 0.0 if step == 0 else reward_of(row, step, action)
        return Transition(observation, reward, *ends, info, mask)

    def target(self, row: int = 0) -> Any:
        return self._seats[row]


# ---- the rows of a pool --------------------------------------------------------------------------


N = 3


def pool_of(spec: RowsSpec, **keywords: Any) -> Pool:
    keywords.setdefault("config", PoolConfig())
    return Pool([spec] * N, one_book=True, **keywords)


class Expected:
    """The transitions that a pool must return, env by env.

    All envs must end their episodes in the same step, because episodes are started in order.
    """

    def __init__(self, spec: RowsSpec) -> None:
        self.spec = spec
        self.playing = [[env, 0] for env in range(N)]
        self.dealt = N

    def check(self, pool: Pool, batch: Any, actions: Sequence[Any] | None) -> None:
        """Compare a batch of some envs with the expected one; `actions` is None after a reset."""
        rows, space = self.spec.rows, self.spec.observation_space
        assert len(batch.infos) == len(batch.rewards) == rows * len(batch.envs)
        for place, env in enumerate(batch.envs.tolist()):
            episode, step = self.playing[env]
            step += actions is not None
            ends = step == self.spec.length
            self.playing[env] = [episode, step]
            if ends:
                self.playing[env] = [self.dealt, 0]
                self.dealt += 1
            for row in range(rows):
                at = place * rows + row
                action = 0 if actions is None else number_in(actions[at])
                last = shown(space, episode, row, step, action)
                flags = bool(batch.terminated[at]), bool(batch.truncated[at])
                assert flags == (ends and episode % 2 == 0, ends and episode % 2 == 1)
                if actions is not None:
                    assert batch.rewards[at] == reward_of(row, step, action)
                told = {"row": row, "step": step} if step % 3 == 0 and row == rows - 1 else {}
                assert (batch.infos if actions is not None else batch.reset_infos)[at] == told
                if ends:
                    same(batch.final_observations[at], last)
                    number, step_now = self.playing[env][0], 0
                    last = shown(space, number, row, 0, 0)
                else:
                    assert batch.final_observations[at] is None
                    step_now = step
                same(pool.row(batch, at), last)
                if self.spec.masked:
                    mask = pool.action_mask(env * rows + row)
                    np.testing.assert_array_equal(mask, mask_of(row, step_now))


def same(given: Any, expected: Any) -> None:
    np.testing.assert_equal(given, expected)
    if isinstance(expected, np.ndarray):
        assert (given.dtype, given.shape) == (expected.dtype, expected.shape)


def random_actions(spec: RowsSpec, count: int, rng: np.random.Generator) -> Any:
    numbers = rng.integers(0, MOST, count)
    if spec.action_space == ACTIONS:
        return np.stack([numbers, numbers[::-1]], axis=1).astype(np.float32)
    if spec.action_space == ACTION_DICT:
        return [{"kind": number, "at": np.full(2, number, np.float32)} for number in numbers]
    return numbers


ONE_ROW = RowsSpec(rows=1, masked=True)


@pytest.mark.parametrize(
    ("spec", "envs_per_worker"),
    [
        pytest.param(RowsSpec(), 1, id="a worker for each"),
        pytest.param(ONE_ROW, 1, id="one row, a worker for each"),
        pytest.param(RowsSpec(), N, id="box"),
        pytest.param(ONE_ROW, N, id="one row"),
        pytest.param(RowsSpec(3, DISCRETE, masked=True), N, id="discrete"),
        pytest.param(RowsSpec(2, DICT, ACTIONS), N, id="dict"),
        pytest.param(RowsSpec(5, action_space=ACTION_DICT), N, id="actions in a dict"),
    ],
)
def test_every_row_gets_its_own_transitions(spec, envs_per_worker):
    rng = np.random.default_rng(5)
    with closing(pool_of(spec, config=PoolConfig(envs_per_worker=envs_per_worker))) as pool:
        assert (pool.n, pool.rows, pool.n_rows) == (N, spec.rows, N * spec.rows)
        expected = Expected(spec)
        expected.check(pool, pool.reset(), None)
        for _ in range(23):
            actions = random_actions(spec, pool.n_rows, rng)
            pool.send(actions)
            expected.check(pool, pool.recv(), actions)
        assert pool.stats().env_steps == 23 * pool.n_rows


def test_the_first_ready_come_with_all_their_rows():
    spec = RowsSpec(length=1000)
    with closing(pool_of(spec)) as pool:
        expected = Expected(spec)
        expected.check(pool, pool.reset(), None)
        pool.send(range(pool.n_rows))
        newest = dict(enumerate(range(pool.n_rows)))
        for round_ in range(40):
            batch = pool.recv(min_ready=1)
            envs = batch.envs.tolist()
            expected.check(pool, batch, [newest[row] for row in pool.rows_of(envs)])
            again = envs[:1] if round_ % 2 else envs
            actions = [round_ + row for row in pool.rows_of(again)]
            newest |= dict(zip(pool.rows_of(again), actions, strict=True))
            if set(envs) - set(again):  # actions for the other envs come later
                pool.send(actions, again)
                others = sorted(set(envs) - set(again))
                actions = [500 + row for row in pool.rows_of(others)]
                newest |= dict(zip(pool.rows_of(others), actions, strict=True))
                pool.send(actions, others)
            else:
                pool.send(actions, again)
        assert pool.pending == N


@pytest.mark.parametrize("steps", [3, 4], ids=["after infos", "after plain replies"])
@pytest.mark.parametrize("first", ["kill", "suspend"], ids=["before", "during"])
def test_a_killed_worker_truncates_each_row_of_its_env_once(first, steps):
    spec = RowsSpec(length=50)
    with closing(pool_of(spec)) as pool:
        expected = Expected(spec)
        expected.check(pool, pool.reset(), None)
        for step in range(steps):
            actions = np.arange(pool.n_rows) + step
            pool.send(actions)
            before = pool.recv()
            expected.check(pool, before, actions)
        worker = psutil.Process(pool.stats().instances[1].worker_pid)
        getattr(worker, first)()
        actions = np.arange(pool.n_rows) + 100
        pool.send(actions)
        if first == "suspend":
            worker.kill()
        batch = pool.recv()
        hit, others = [2, 3], [0, 1, 4, 5]
        assert batch.truncated.tolist() == [row in hit for row in range(6)]
        assert not batch.terminated.any()
        for row in hit:
            info = batch.infos[row]
            assert info["sc2pool.synthetic"] is True
            assert info["sc2pool.fault"]["kind"] == "worker-exited"
            assert batch.rewards[row] == 0
            same(batch.final_observations[row], pool.row(before, row))
            same(pool.row(batch, row), shown(BOX, N, row % 2, 0, 0))
        for row in others:
            assert "sc2pool.fault" not in batch.infos[row]
            last = shown(BOX, row // 2, row % 2, steps + 1, 100 + row)
            same(pool.row(batch, row), last)
        expected.playing, expected.dealt = [[0, steps + 1], [N, 0], [2, steps + 1]], N + 1
        for step in range(5):
            pool.send(actions - step)
            expected.check(pool, pool.recv(), actions - step)
        assert pool.stats().faults == 1


def test_attributes_are_of_one_row_and_survive_the_instance():
    with closing(pool_of(RowsSpec(length=2))) as pool:
        pool.set_attr([3], "level", 7)
        pool.set_attr([0, 1], "level", 1)
        pool.reset()
        rows = range(pool.n_rows)
        assert pool.call(rows, "get_attr", "level") == [1, 1, 0, 7, 0, 0]
        assert pool.call([4, 3], "env_method", "twice", (4,), {}) == [(0, 8), (1, 8)]
        psutil.Process(pool.stats().instances[1].worker_pid).kill()
        pool.send([0] * 6)
        assert pool.recv().truncated.tolist() == [False, False, True, True, False, False]
        pool.send([0] * 6)
        pool.recv()
        assert pool.call(rows, "get_attr", "level") == [1, 1, 0, 7, 0, 0]
        with pytest.raises(AttributeError):
            pool.call([1], "get_attr", "no_such")


def test_spares_hold_all_rows():
    spec = RowsSpec(length=3, masked=True)
    with closing(pool_of(spec, spares=2)) as pool:
        expected = Expected(spec)
        pool.seed(0)  # without a seed an env takes any spare that is ready
        expected.check(pool, pool.reset(), None)
        for step in range(12):
            actions = np.arange(pool.n_rows) + step
            pool.send(actions)
            expected.check(pool, pool.recv(), actions)


def test_actions_are_counted_and_named_by_row():
    with closing(pool_of(RowsSpec(), config=PoolConfig(envs_per_worker=N))) as pool:
        pool.reset()
        with pytest.raises(ActionError, match="expected 6 actions, one per row, got 3"):
            pool.send([0] * 3)
        with pytest.raises(ActionError, match=f"row 5: action {MOST} is not in"):
            pool.send([0, MOST], envs=[2])


def test_all_envs_have_as_many_rows():
    with pytest.raises(ConfigError, match="env 1: rows is 3, but env 0 has 2"):
        Pool([RowsSpec(), RowsSpec(rows=3)], one_book=True, config=PoolConfig())
