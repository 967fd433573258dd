"""`SC2TianshouVectorEnv` behaves as tianshou's own vector env on the same envs.

`test_libraries.py` runs this file, in the environment that has tianshou.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError, ResetNeeded
from tianshou.algorithm.algorithm_base import Policy
from tianshou.data import AsyncCollector, Batch, VectorReplayBuffer
from tianshou.env import BaseVectorEnv, DummyVectorEnv

from sc2pool import SC2TianshouVectorEnv, SubprocSC2VecEnv
from sc2pool.errors import ActionError, ClosedError, ConfigError
from tests.contract.envs import Counting, Drawing, Gated, Sampling
from tests.libraries.programs.killing import kill_a_game

Make = Callable[..., SC2TianshouVectorEnv]
DICT = spaces.Dict({"a": spaces.Box(0, 1, (2,)), "b": spaces.Discrete(3)})


@pytest.fixture
def make() -> Iterator[Make]:
    """A fixture that makes a vector env from functions, or from the constructor's arguments.

    By default the vector env is serial; `tests/contract` shows that workers play the same steps.
    """
    with ExitStack() as stack:

        def make_env(
            *env_fns: Callable[[], Any], serial: bool = True, **keywords: Any
        ) -> SC2TianshouVectorEnv:
            made = SC2TianshouVectorEnv(list(env_fns) or None, serial=serial, **keywords)
            stack.callback(made.close)
            return made

        yield make_env


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "gate"
    yield path
    path.touch()


@pytest.fixture
def gated(make: Make, gate: Path) -> SC2TianshouVectorEnv:
    """Three envs whose step returns when one env is ready. Env 1 is ready when the file exists."""
    envs = make(Counting, partial(Gated, str(gate)), Counting, wait_num=1, serial=False)
    envs.reset()
    return envs


def test_it_is_a_vector_env_of_tianshou(make):
    envs = make(Counting, Counting)
    assert isinstance(envs, BaseVectorEnv)
    assert (len(envs), envs.env_num, envs.wait_num, envs.is_async) == (2, 2, 2, False)
    assert envs.action_space == [Counting.action_space] * 2
    assert envs.observation_space == [Counting.observation_space] * 2
    assert envs.ready_id == [0, 1]
    assert repr(envs) == "SC2TianshouVectorEnv(env_fns, n=2, closed=False)"


def test_same_results_as_tianshous_own_class(make):
    fns = [partial(Counting, length) for length in (2, 3, 4)]
    ours, theirs = make(*fns), DummyVectorEnv(fns)
    random = np.random.default_rng(0)
    np.testing.assert_array_equal(ours.reset()[0], theirs.reset()[0])
    for _ in range(20):
        ids = random.permutation(3)[: random.integers(1, 4)]
        mine, other = ours.step([1] * len(ids), ids), theirs.step([1] * len(ids), ids)
        for part, expected in zip(mine[:4], other[:4], strict=True):
            np.testing.assert_array_equal(part, expected)
        assert mine[4].tolist() == other[4].tolist()
        over = ids[mine[2]]
        if len(over):
            np.testing.assert_array_equal(ours.reset(over)[0], theirs.reset(over)[0])


def test_an_env_that_is_over_is_not_stepped_and_a_second_reset_begins_anew(make):
    envs = make(partial(Counting, 1), Counting)
    with pytest.raises(ResetNeeded):
        envs.reset(1)
    envs.reset()
    observations, _, terminated, _, _ = envs.step([0, 0])
    assert (observations[:, 0].tolist(), terminated.tolist()) == ([1, 1], [True, False])
    with pytest.raises(ResetNeeded, match=r"envs \[0\] are over"):
        envs.step([0, 0])
    first, _ = envs.reset([0])
    assert first.tolist() == [[0]]
    envs.reset([0, 1])
    assert envs.step([0, 0])[0][:, 0].tolist() == [1, 1]


def test_ready_envs_go_on_while_one_is_waited_for(gated, gate):
    envs, seen = [0, 1, 2], []
    for _ in range(12):
        observations, _, terminated, _, infos = gated.step([0] * len(envs), envs)
        envs = [info["env_id"] for info in infos]
        seen += zip(envs, observations[:, 0].tolist(), strict=True)
        if terminated.any():
            gated.reset(np.array(envs)[terminated])  # this reset returns the autoreset's result
    assert {env for env, _ in seen} == {0, 2}
    for env in (0, 2):
        counts = [count for other, count in seen if other == env]
        assert counts == [1 + step % 3 for step in range(len(counts))]
    assert 1 in gated.waiting_id
    assert 1 not in gated.ready_id
    gate.touch()
    received: list[int] = []
    while gated.waiting_id:
        received += [info["env_id"] for info in gated.step(None)[4]]
    assert 1 in received
    with pytest.raises(NoAsyncCallError):
        gated.step(None)


def test_calls_that_a_pending_step_forbids(gated, gate):
    gated.step([0], [0])
    gated.step([0, 0], [0, 1])
    with pytest.raises(AlreadyPendingCallError):
        gated.step([0], [1])
    with pytest.raises(AlreadyPendingCallError, match=r"envs \[1\] with step\(None\)"):
        gated.reset([0])
    gate.touch()
    assert gated.reset()[0][:, 0].tolist() == [0, 0, 0]
    assert gated.waiting_id == []


def test_a_step_returns_after_the_timeout(make, gate):
    envs = make(Counting, partial(Gated, str(gate)), timeout=0.2, serial=False)
    assert envs.is_async
    envs.reset()
    assert [info["env_id"] for info in envs.step([0, 0])[4]] == [0]
    gate.touch()
    assert [info["env_id"] for info in envs.step(None)[4]] == [1]


def test_a_wrong_action_is_not_sent(make, standin_dir):
    envs = make(task="MoveToBeacon", n=2, game=standin_dir)
    envs.reset()
    with pytest.raises(ActionError):
        envs.step([0, 99])
    with pytest.raises(ValueError, match="action is None"):
        envs.step(None)
    envs.step([0, 0])
    assert envs.stats().env_steps == 2


def test_observations_that_are_no_single_array_are_objects(make):
    envs = make(partial(Sampling, DICT, spaces.Discrete(2)))
    first, _ = envs.reset()
    observations = envs.step([0])[0]
    assert first.dtype == observations.dtype == object
    assert observations[0] in DICT
    with pytest.raises(ConfigError, match="Tuple"):
        make(partial(Sampling, spaces.Tuple([DICT])))


def test_a_task_of_two_learners_needs_rows(make, standin_dir):
    with pytest.raises(ConfigError, match="MarineDuel has 2: SubprocSC2VecEnv"):
        make(task="MarineDuel", n=2, game=standin_dir)


def test_one_seed_is_one_run_in_every_env_class(make, standin_dir):
    other = SubprocSC2VecEnv(n=2, task="MoveToBeacon", game=standin_dir, seed=3)
    expected = [other.reset(), other.step([1, 2])[0]]
    other.close()
    envs = make(task="MoveToBeacon", n=2, game=standin_dir, seed=3)
    for _ in range(2):
        np.testing.assert_array_equal(envs.reset()[0], expected[0])
        np.testing.assert_array_equal(envs.step([1, 2])[0], expected[1])
        assert envs.seed(3) == [[3], [4]]
    assert (envs.reset(seed=3)[0] == expected[0]).all()
    with pytest.raises(ValueError, match="num_envs=2"):
        envs.seed([1, 2, 3])


def test_attributes_and_pictures(make):
    envs = make(partial(Drawing, 1), partial(Drawing, 2))
    envs.reset()
    envs.set_env_attr("colour", 7, 1)
    assert envs.get_env_attr("colour") == [1, 7]
    assert envs.get_env_attr("colour", 1) == [7]
    assert [int(frame[0, 0, 0]) for frame in envs.render()] == [1, 7]


def test_a_killed_game_is_one_truncation_with_numbers_in_its_info(make, standin_dir):
    envs = make(task="MoveToBeacon", n=2, game=standin_dir, serial=False)
    envs.reset()
    kill_a_game()
    _, rewards, terminated, truncated, infos = envs.step([0, 0])
    (killed,) = np.flatnonzero(truncated)
    assert (rewards[killed], terminated.any()) == (0, False)
    assert infos[killed]["sc2pool.synthetic"]
    assert set(infos[killed]["sc2pool.fault"]) == {"instance", "recovery_s"}
    assert "sc2pool.fault" not in infos[1 - killed]
    envs.reset(killed)
    assert not envs.step([0, 0])[3].any()
    assert envs.stats().faults == 1


@pytest.mark.parametrize(
    "wrong",
    [{"wait_num": 0}, {"wait_num": 3}, {"timeout": 0}, {"timeout": "2"}, {"game": "real"}],
    ids=str,
)
def test_wrong_keywords(make, wrong):
    with pytest.raises(ConfigError):
        make(Counting, Counting, **wrong)


def test_closing_twice(make):
    envs = make(Counting)
    envs.close()
    envs.close()
    assert envs.is_closed
    with pytest.raises(ClosedError):
        envs.reset()


class Waiting(Policy):
    """A policy with a state and entries of its own, which tianshou's `AsyncCollector` needs."""

    def forward(self, batch: Any, state: Any = None, **_: Any) -> Batch:
        zeros = np.zeros(len(batch.obs), int)
        return Batch(act=zeros, state=Batch(zeros=zeros), policy=Batch(zeros=zeros))


def test_tianshous_asynchronous_collector_takes_it(make):
    envs = make(*[partial(Counting, length) for length in (2, 3, 4)], wait_num=2, serial=False)
    buffer = VectorReplayBuffer(300, 3)
    collector = AsyncCollector(Waiting(action_space=envs.action_space[0]), envs, buffer)
    collector.reset()
    assert collector.collect(n_step=60).n_collected_steps >= 60
    for env, length in enumerate((2, 3, 4)):
        played = buffer.buffers[env]
        counts = played.obs_next[: len(played), 0].tolist()
        assert counts == [1 + step % length for step in range(len(counts))]
        np.testing.assert_array_equal(played.obs[: len(played), 0], np.array(counts) - 1)
    collector.reset()
