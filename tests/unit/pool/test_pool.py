"""Tests a pool with real workers, the list of changing instances, and the check of actions."""

from __future__ import annotations

import os
from contextlib import closing
from functools import partial
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import psutil
import pytest
from gymnasium import spaces

from sc2pool.config import PoolConfig
from sc2pool.envs.shared_keywords import gym_specs
from sc2pool.errors import ActionError, ClosedError, ConfigError
from sc2pool.pool.batch import check_actions, check_count
from sc2pool.pool.instances.seats import Seat, exchange
from sc2pool.pool.pool import Pool
from sc2pool.pool.runtime import finite, seated
from tests.unit.pool.conftest import meanwhile

# ---- a pool with workers -------------------------------------------------------------------------


@pytest.fixture
def pool():
    env_fns = [partial(gymnasium.make, "CartPole-v1")] * 2
    with closing(Pool(gym_specs(env_fns), one_book=False, config=PoolConfig())) as made:
        yield made


portable = pytest.mark.parametrize("variant", ["portable"], indirect=True)
"""Runs a test on the portable variant; `test_rows` and tests/contract run the system's variant."""


def kill_worker(pool: Pool, env: int) -> None:
    psutil.Process(pool.stats().instances[env].worker_pid).kill()


@portable
def test_it_plays_the_very_episodes_of_the_envs(variant, pool):
    alone = [gymnasium.make("CartPole-v1") for _ in range(2)]
    observations = [env.reset(seed=seed)[0] for env, seed in zip(alone, (3, 4), strict=True)]
    np.testing.assert_array_equal(pool.reset([3, 4]).observations, observations)
    for step in range(200):
        pool.send([step % 2, 1])
        batch = pool.recv()
        for row, env in enumerate(alone):
            observation, reward, terminated, truncated, _ = env.step((step % 2, 1)[row])
            flags = bool(batch.terminated[row]), bool(batch.truncated[row])
            assert (batch.rewards[row], *flags) == (reward, terminated, truncated)
            if terminated or truncated:
                np.testing.assert_array_equal(batch.final_observations[row], observation)
                observation, _ = env.reset()
                assert batch.reset_infos[row] == {}
            np.testing.assert_array_equal(batch.observations[row], observation)
    assert pool.stats().env_steps == 400
    assert pool.stats().episodes > 10


@portable
def test_a_killed_worker_is_replaced(variant, pool):
    pool.reset()
    kill_worker(pool, 1)
    pool.send([0, 0])
    batch = pool.recv()
    assert batch.truncated.tolist() == [False, True]
    assert batch.infos[1]["sc2pool.synthetic"] is True
    pool.send([0, 0])
    assert not pool.recv().truncated.any()


def test_poll_without_replies_leaves_the_records_alone(variant, pool, monkeypatch, wait_for):
    pool.reset([1, 2])
    pool.send(np.zeros(2, np.int64))
    pool.recv()
    polls = []
    loop = pool._runtime.loop
    wait_until = loop.wait_until
    monkeypatch.setattr(loop, "wait_until", lambda *a, **k: polls.append(1) or wait_until(*a, **k))
    for _ in range(3):
        pool.send(np.zeros(2, np.int64))
        loop._next_poll_s = 0.0  # a poll is due
        assert not pool.recv().terminated.any()
    if variant == "portable":
        assert polls, "it cannot tell, so it polls"
        return
    assert not polls
    kill_worker(pool, 1)
    wait_for(loop._waiter.has_more)
    polls.clear()
    pool.send(np.zeros(2, np.int64))
    loop._next_poll_s = 0.0
    assert pool.recv().truncated.tolist() == [False, True]
    assert polls


def test_a_rebuilt_env_with_other_spaces_ends_the_pool(tmp_path):
    def of_changing_size() -> gymnasium.Env:
        (tmp_path / str(os.getpid())).touch()
        is_first = len(list(tmp_path.iterdir())) == 1
        return gymnasium.make("CartPole-v1" if is_first else "Acrobot-v1")

    specs = gym_specs([of_changing_size])
    with closing(Pool(specs, one_book=False, config=PoolConfig())) as pool:
        pool.reset()
        kill_worker(pool, 0)
        pool.send([0])
        with pytest.raises(ConfigError, match=r"env 0: the spaces have changed.*\(6,\).*\(4,\)"):
            pool.recv()


def test_a_step_that_is_closed_under_says_so(pool, monkeypatch):
    """The pool can be closed while the fast step path hands a step to the general step path."""

    pool.reset()
    pool.send(np.zeros(2, np.int64))
    monkeypatch.setattr(pool._stepping, "recv_plain", pool.close)
    with pytest.raises(ClosedError):
        pool.recv()


# ---- instances, read while they change -----------------------------------------------------------


@pytest.fixture
def seats() -> list[Seat]:
    made = []
    for index in range(4):
        instance = SimpleNamespace(number=index)
        made.append(Seat(index, index == 3, b"", instance))
    return made


def test_no_instance_is_seen_on_two_seats(seats):
    def play(turn: int) -> None:
        sum(range(50))  # a very short episode
        exchange(seats[turn % 3], seats[3])

    with meanwhile(play):
        for _ in range(20_000):
            numbers = [instance.number for _, instance in seated(seats)]
            assert sorted(numbers) == [0, 1, 2, 3]


def test_an_exchange_left_half_done_does_not_hang_the_reader(seats):
    seats[0].instance = seats[3].instance  # as if Ctrl-C came here
    assert [instance.number for _, instance in seated(seats)] == [3, 1, 2, 3]


def test_json_has_no_nan():
    assert [finite(value) for value in (1.5, float("nan"), float("inf"))] == [1.5, None, None]


# ---- the check of a batch of actions -------------------------------------------------------------


BOX = spaces.Box(np.array([-1, 0], np.float32), np.array([1, 5], np.float32))
AT_THE_TOP = spaces.MultiDiscrete(np.array([6, 3], np.uint8), np.uint8, start=np.array([250, 0]))
"""The first part of an action is at most 255, because 256 does not fit the type."""
GOOD = [
    (spaces.Discrete(3), [0, 2]),
    (spaces.Discrete(3), np.array([0, 2], np.uint8)),
    (spaces.Discrete(3, start=-1), [-1, 1]),
    (spaces.Discrete(3), np.array([0, 5, 2, 5])[::2]),
    (spaces.MultiDiscrete([2, 3]), [[0, 2], [1, 0]]),
    (spaces.MultiDiscrete([2, 3], start=[5, 0]), [[5, 2], [6, 0]]),
    (spaces.Discrete(2, start=2**63 - 2), [2**63 - 1, 2**63 - 2]),
    (AT_THE_TOP, [[250, 0], [255, 2]]),
    (spaces.MultiBinary(2), [[0, 1], [1, 1]]),
    (spaces.MultiBinary(2), [[False, True], [True, True]]),
    (spaces.MultiBinary(2), np.array([[0, 1], [1, 1]], np.float32)),
    (BOX, [[0.5, 5], [-1, 0]]),
    (BOX, [np.zeros(2), np.ones(2, int)]),
]


@pytest.mark.usefixtures("step_path")
@pytest.mark.parametrize(("space", "actions"), GOOD, ids=str)
def test_good_actions_come_back_as_one_array(space, actions):
    checked = check_actions(space, actions, range(2))
    assert isinstance(checked, np.ndarray)
    np.testing.assert_array_equal(checked, np.asarray(actions))


@pytest.mark.usefixtures("step_path")
def test_a_box_action_is_clipped_and_has_the_spaces_type():
    checked = check_actions(BOX, [[-7.0, 9.0], [np.inf, -np.inf]], range(2))
    assert checked.dtype == np.float32
    assert checked.tolist() == [[-1, 5], [1, 0]]


@pytest.mark.parametrize(
    ("dtype", "low", "high", "actions"),
    [
        (np.int64, -(2**63), 2**63 - 1, [[np.inf, -np.inf], [2.0**63, -1e300]]),
        (np.int64, 3 - 2**53, 2**53 + 3, [[1e17, -1e17]]),
        (np.int64, -(2**63), 2**63 - 1, np.array([[2**64 - 1, 2**63 - 2]], np.uint64)),
        (np.uint64, 0, 2**64 - 1, [[1e300, -1.0]]),
        (np.uint64, 2, 2**64 - 1, [[2**62 + 1, -1]]),
        (np.int8, -5, 5, [[1e9, -4.9]]),
    ],
    ids=str,
)
def test_an_integer_action_is_clipped_exactly(dtype, low, high, actions):
    """A bound's nearest float may lie beyond the bound, or may not even fit the type."""
    given = np.array(actions)
    checked = check_actions(spaces.Box(low, high, (2,), dtype), given, range(len(given)))
    assert checked.dtype == dtype
    exact = [low if one <= low else high if one >= high else int(one) for one in given.flat]
    assert np.ravel(checked).tolist() == exact


class GradientTensor:
    """An object that cannot become an array, like one of torch's tensors with a gradient."""

    def __len__(self) -> int:
        return 2

    def __repr__(self) -> str:
        return "tensor"  # part of the test's name

    def __array__(self, *_: object, **__: object) -> Any:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad")


@pytest.mark.usefixtures("step_path")
@pytest.mark.parametrize(
    ("space", "actions", "told"),
    [
        (spaces.Discrete(3), [0, 3], r"env 8: action 3 is not in Discrete\(3\)"),
        (spaces.Discrete(3), [-1, 0], "env 4: action -1"),
        (spaces.Discrete(3), np.array([0, 5, 3, 5])[::2], "env 8: action 3"),
        (spaces.Discrete(3), np.array([2**63, 0], np.uint64), f"env 4: action {2**63}"),
        (spaces.Discrete(3, start=2), [2, 1], "env 8: action 1"),
        (spaces.Discrete(3), [0.0, 1.0], "must be integers, got dtype float64"),
        (spaces.Discrete(3), [True, False], "must be integers, got dtype bool"),
        (spaces.Discrete(3), ["a", "b"], "must be integers"),
        (spaces.Discrete(3), [None, 1], "must be integers"),
        (spaces.Discrete(3), [[0], [1]], r"must have shape \(2,\), got \(2, 1\)"),
        (spaces.Discrete(3), [[0], [1, 2]], "do not form an array"),
        (spaces.MultiDiscrete([2, 3]), [[0, 0], [2, 0]], r"env 8: action \[2, 0\]"),
        (spaces.MultiDiscrete([2, 3]), [0, 0], r"must have shape \(2, 2\)"),
        (AT_THE_TOP, [[255, 0], [256, 0]], r"env 8: action \[256, 0\]"),
        (AT_THE_TOP, [[4, 0], [255, 0]], r"env 4: action \[4, 0\]"),
        (spaces.MultiBinary(2), [[0, 2], [0, 0]], r"env 4: action \[0, 2\]"),
        (spaces.MultiBinary(2), [[0, 1], [0, 0.5]], r"env 8: action \[0.0, 0.5\]"),
        (spaces.MultiBinary(2), [[np.nan, 1], [0, 0]], r"env 4: action \[nan, 1.0\]"),
        (BOX, [[0, 0], [np.nan, 0]], r"env 8: action \[nan, 0.0\]"),
        (BOX, [["a", "b"]] * 2, "must be numbers"),
        (BOX, GradientTensor(), "do not form an array .* requires grad"),
        (spaces.Text(2), ["ab", "abc"], "env 8: action 'abc' is not in Text"),
        (spaces.Dict(a=spaces.Discrete(2)), [{"a": 2}, {}], "env 4: action {'a': 2}"),
        (spaces.Discrete(3), [0], "expected 2 actions, one per env, got 1"),
        (spaces.Discrete(3), np.zeros((0,), int), "got 0"),
        (spaces.Discrete(3), 1, "got 1"),
        (spaces.Discrete(3), None, "got None"),
    ],
    ids=str,
)
def test_bad_actions_are_told_with_their_env(space, actions, told):
    with pytest.raises(ActionError, match=told) as raised:
        check_actions(space, actions, [4, 8])
    assert isinstance(raised.value, ValueError)


@pytest.mark.usefixtures("step_path")
def test_the_given_actions_are_not_changed():
    given = np.array([[9.0, 9.0], [0.0, 0.0]])
    check_actions(BOX, given, range(2))
    assert given[0].tolist() == [9, 9]


@pytest.mark.usefixtures("step_path")
def test_count_asks_nothing_but_their_number():
    check_count(["anything", None], 2)
    check_count({1: 2, 3: 4}, 2)
