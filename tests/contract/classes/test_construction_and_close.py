"""Clauses 1, 2 and 9 of the contract: the arguments and spaces of the env classes, and `close`.

`close` takes a bounded time, and may be called at any time and repeatedly.
"""

from __future__ import annotations

import copy
import gc
import multiprocessing
import pickle
import threading
import time
import weakref
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space
from stable_baselines3.common.env_util import make_vec_env

from sc2pool import SC2VectorEnv, SubprocSC2VecEnv
from sc2pool.errors import ClosedError, ConfigError, UserCodeError
from tests.contract.conftest import without_workers
from tests.contract.envs import Answering, Counting, Hanging, Mischief, Sampling, Words
from tests.support.pools import begun


@without_workers
def test_spaces_number_and_render_mode_are_known_before_the_first_reset(vec):
    made = vec(Counting, Counting, Counting)
    assert made.num_envs == 3
    assert made.observation_space == Counting.observation_space
    assert made.action_space == Counting.action_space
    assert made.render_mode is None
    assert made.get_attr("render_mode") == [None] * 3
    assert made.unwrapped is made


@without_workers
@pytest.mark.parametrize("start_method", multiprocessing.get_all_start_methods())
def test_every_start_method_is_accepted(vec, start_method):
    made = vec(Counting, start_method=start_method)
    assert made.reset().tolist() == [[0.0]]


def test_the_start_method_may_be_given_by_place(pools):
    made = SubprocSC2VecEnv([Counting], "spawn", serial=True)
    pools.callback(made.close)
    assert made.num_envs == 1


def test_an_illegal_start_method_is_a_value_error():
    with pytest.raises(ValueError, match="cannot find context for 'illegal_method'"):
        SubprocSC2VecEnv([Counting], start_method="illegal_method")


def test_make_vec_env_makes_it(pools):
    made = make_vec_env(
        partial(Counting, 4),
        n_envs=2,
        seed=5,
        vec_env_cls=SubprocSC2VecEnv,
        vec_env_kwargs={"start_method": "spawn", "serial": True},
    )
    pools.callback(made.close)
    made.reset()
    assert [info["keywords"]["seed"] for info in made.reset_infos] == [5, 6]
    for _ in range(4):
        _, _, dones, infos = made.step([0, 0])
    assert dones.all()
    assert [info["episode"]["l"] for info in infos] == [4, 4], "each env has a Monitor"


def test_a_task_launches_one_game_for_each_env_and_no_other(vec_task):
    made = begun(vec_task(n=2))
    assert made.stats().launches == 2
    assert [instance.instance for instance in made.stats().instances] == [0, 1]


@without_workers
def test_step_mul_and_max_loops_are_the_pools(vec_task, vector_task, gym_env):
    made = begun(vec_task(n=1, step_mul=4, max_loops=12))
    assert [bool(made.step([0])[2][0]) for _ in range(3)] == [False, False, True]
    assert made.metadata["render_fps"] == 22.4 / 4
    vector = vector_task(n=1, step_mul=np.int64(4), max_loops=np.int64(12))
    assert type(vector.step_mul) is int
    assert vector.step_mul == 4
    vector.reset()
    assert [bool(vector.step([0])[3][0]) for _ in range(3)] == [False, False, True]
    single = gym_env(step_mul=6, max_loops=12)
    assert single.step_mul == 6
    single.reset()
    assert [single.step(0)[3] for _ in range(2)] == [False, True]


@without_workers
def test_what_a_pool_says_of_itself(vec, vec_task, vector_task, gym_env):
    made = vec_task(n=1, spares=1)
    version = made.stats().game_version
    told = f"task=MoveToBeacon, n=1, spares=1, realtime=False, game_version={version!r}"
    assert repr(made) == f"SubprocSC2VecEnv({told}, closed=False)"
    assert repr(made.pool) == f"Pool(n=1, spares=1, game_version={version!r}, closed=False)"
    for travel in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be copied or pickled: make another env in its"):
            travel(made)
    made.close()
    assert repr(made) == f"SubprocSC2VecEnv({told}, closed=True)"
    told = told.replace("spares=1", "spares=0")
    assert repr(gym_env()) == f"SC2GymEnv({told}, closed=False)"
    told = told.replace("realtime=False", "realtime=True")
    assert repr(vector_task(n=1, realtime=True)) == f"SC2VectorEnv({told}, closed=False)"
    assert repr(vec(Counting, Counting)) == "SubprocSC2VecEnv(env_fns, n=2, closed=False)"


def test_envs_that_differ_in_their_spaces_are_a_config_error():
    small, large = (partial(Sampling, spaces.Box(0, 1, (size,))) for size in (2, 3))
    with pytest.raises(ConfigError, match=r"env 1: observation_space is Box.*\(3,\).*but env 0"):
        SubprocSC2VecEnv([small, large])


def test_envs_that_differ_in_their_render_mode_are_refused():
    def other() -> Counting:
        env = Counting()
        env.render_mode = "rgb_array"
        return env

    with pytest.raises(AssertionError, match="should be the same for all"):
        SubprocSC2VecEnv([Counting, other])


@without_workers
def test_an_env_without_metadata(vec):
    class Bare(Counting):
        metadata = None

    assert vec(Bare).reset().tolist() == [[0.0]]


NESTED = spaces.Dict(
    z=spaces.Box(0, 1, (2,)),
    a=spaces.Tuple([spaces.Discrete(3), spaces.Dict(image=spaces.Box(0, 255, (4, 4), np.uint8))]),
)
SPACES = {
    "discrete": spaces.Discrete(4, start=2),
    "box": spaces.Box(-1, 1, (3,), np.float16),
    "nested": NESTED,
    "text in dict": spaces.Dict(word=spaces.Text(4), place=spaces.Box(0, 1, (2,))),
    "sequence": spaces.Sequence(spaces.Discrete(3)),
    "graph": spaces.Graph(spaces.Box(0, 1, (2,)), spaces.Discrete(2)),
    "one of": spaces.OneOf([spaces.Discrete(2), spaces.Box(0, 1, (1,))]),
}


@without_workers
@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_spaces_are_batched_as_gymnasium_does(vector, space):
    made = vector(*[partial(Sampling, space)] * 2)
    assert isinstance(made, VectorEnv)
    assert (made.num_envs, made.render_mode, made.closed) == (2, None, False)
    assert made.single_observation_space == made.single_action_space == space
    assert made.observation_space == made.action_space == batch_space(space, 2)
    assert made.reset(seed=1)[0] in made.observation_space
    for _ in range(2):
        actions = made.action_space.sample()
        assert made.step(actions)[0] in made.observation_space
        assert all(action in space for action in made.get_attr("last_action"))


def test_a_custom_space_travels_where_shared_memory_is_not_asked_for(vector):
    make = partial(Sampling, Words(), spaces.Discrete(2))
    with pytest.raises(ValueError, match=r"custom space.*shared_memory=False"):
        vector(make)
    made = vector(make, make, shared_memory=False)
    assert made.reset()[0] == ("word", "word")
    assert isinstance(made.observation_space, spaces.Tuple)


def boxes(*highs, shape=(2,)):
    return [partial(Sampling, spaces.Box(0, high, shape), spaces.Discrete(2)) for high in highs]


@without_workers
def test_spaces_that_differ_only_in_their_bounds(vector):
    with pytest.raises(RuntimeError, match=r"not equivalent.*Env 1 has.*observation_mode='differ"):
        vector(*boxes(1, 2))
    made = vector(*boxes(1, 2), observation_mode="different")
    assert made.single_observation_space == spaces.Box(0, 1, (2,))
    assert made.observation_space.high.tolist() == [[1, 1], [2, 2]]
    assert made.reset()[0].shape == (2, 2)
    own = spaces.Box(0, 9, (2, 2)), spaces.Box(0, 9, (2,))
    made = vector(*boxes(1, 2), observation_mode=own)
    assert (made.observation_space, made.single_observation_space) == own


@pytest.mark.parametrize(
    ("env_fns", "keywords", "error", "told"),
    [
        (boxes(1) + boxes(1, shape=(3,)), {"observation_mode": "different"}, RuntimeError, "env 1"),
        (
            [Counting, partial(Sampling, Counting.observation_space, spaces.Discrete(2))],
            {},
            RuntimeError,
            r"env 1: action_space is Discrete\(2\), but env 0 has Discrete\(5\)",
        ),
        ([Counting], {"observation_mode": "some"}, ValueError, "Invalid `observation_mode`.*some"),
        ([Counting], {"observation_mode": (1, 2)}, TypeError, "to be Spaces"),
        ([Counting], {"autoreset_mode": "Never"}, ValueError, "Never"),
        ([Counting], {"context": "illegal"}, ValueError, "cannot find context for 'illegal'"),
        ([Counting], {"max_concurrency": 0}, ValueError, "must be a positive or None, got 0"),
        ([Counting], {"max_concurrency": 1.5}, ValueError, "must be an integer or None"),
        ([Counting], {"worker": print}, ConfigError, "worker must be None"),
        (None, {"task": "MoveToBeacon", "max_concurrency": 2}, ConfigError, "for env_fns"),
    ],
    ids=str,
)
def test_wrong_input_is_told(env_fns, keywords, error, told):
    with pytest.raises(error, match=told):
        SC2VectorEnv(env_fns, **keywords)


@without_workers
def test_each_env_gets_its_seed(vector):
    made = vector(Counting, Counting, seed=3)
    assert made.reset()[1]["keywords"]["seed"].tolist() == [3, 4], "the constructor's, once"
    for seed, given in [
        (None, [None, None]),
        (5, [5, 6]),
        (np.int64(7), [7, 8]),
        ([None, 9], [None, 9]),
        (np.array([8, 3]), [8, 3]),
    ]:
        _, infos = made.reset(seed=seed, options={"level": 2})
        assert infos["keywords"]["seed"].tolist() == given
        assert infos["keywords"]["options"]["level"].tolist() == [2, 2]
    for seed, told in [
        ([1], "must match num_envs=2 but got length=1"),
        (-1, "at least 0, got -1"),
        ([1, 1.5], r"got 1\.5"),
        (True, "got True"),
        (1.5, r"got 1\.5"),
        ("12", "got '12'"),
    ]:
        with pytest.raises(ValueError, match=told):
            made.reset(seed=seed)


@without_workers
def test_one_seed_gives_a_task_the_episodes_of_a_run(vector_task, vec_task, gym_env):
    made = vector_task(n=2, seed=4)
    shown = [made.reset()[0], made.step([3, 3])[0]]
    single = gym_env()
    for env, seed in enumerate([4, None]):
        np.testing.assert_array_equal(single.reset(seed=seed)[0], shown[0][env])
        np.testing.assert_array_equal(single.step(3)[0], shown[1][env])
    np.testing.assert_array_equal(vec_task(n=2, seed=4).reset(), shown[0])
    np.testing.assert_array_equal(made.reset(seed=4)[0], shown[0])
    np.testing.assert_array_equal(made.reset(seed=4, options={"level": 1})[0], shown[0])


@without_workers
def test_a_list_gives_each_tasks_first_episode_a_seed_of_its_own(vector_task, gym_env):
    made = vector_task(n=2)
    shown, _ = made.reset(seed=[4, 5])
    single = gym_env()
    for env, seed in enumerate([4, 5]):
        np.testing.assert_array_equal(single.reset(seed=seed)[0], shown[env])
    alike, _ = made.reset(seed=[5, 5])
    np.testing.assert_array_equal(alike, shown[[1, 1]])
    one_of_two, _ = made.reset(seed=[None, 4])
    np.testing.assert_array_equal(one_of_two[1], shown[0])
    assert (one_of_two[0] != one_of_two[1]).any()


def test_it_is_a_vector_env_without_a_class_in_between():
    """skrl looks for `VectorEnv` in `__bases__`."""
    assert SC2VectorEnv.__bases__ == (VectorEnv,)


@without_workers
def test_an_env_that_was_never_reset_may_be_stepped(vec, vector):
    assert vec(Counting, Counting).step([0, 0])[0].tolist() == [[1.0], [1.0]]
    made = vector(Counting, partial(Answering, info={"once": True}))
    observations, _, _, _, infos = made.step([0, 0])
    assert observations.tolist() == [[1.0], [1.0]]
    assert infos["_once"].tolist() == [False, True]


CALLS = {
    "reset": (),
    "step": ([0],),
    "step_async": ([0],),
    "step_wait": (),
    "get_attr": ("count",),
    "has_attr": ("count",),
    "set_attr": ("count", 1),
    "env_method": ("area",),
    "env_is_wrapped": (Counting,),
}


def close_in_time(made) -> None:
    """Fails if closing a pool takes longer than allowed."""
    begin_s = time.monotonic()
    made.close()
    assert time.monotonic() - begin_s < 5.0


@without_workers
def test_closed_is_closed(vec):
    made = begun(vec(Counting))
    for _ in range(3):
        made.close()
    for name, arguments in CALLS.items():
        with pytest.raises(ClosedError, match="closed"):
            getattr(made, name)(*arguments)


@pytest.mark.timing
@pytest.mark.parametrize("until", ["made", "reset", "pending"])
def test_it_can_be_closed_at_any_point(vec_task, until):
    made = vec_task(n=1)
    if until != "made":
        made.reset()
    if until == "pending":
        made.step_async([0])
    close_in_time(made)


def test_envs_are_closed_by_their_own_method(vec, tmp_path: Path):
    files = [tmp_path / name for name in ("first", "second")]
    made = begun(vec(*(partial(Mischief, "close", file.touch) for file in files)))
    made.close()
    assert all(file.exists() for file in files)


@pytest.mark.timing
@pytest.mark.parametrize(
    "harm",
    [partial(time.sleep, 60), partial(int, "no number")],
    ids=["that never ends", "that raises"],
)
def test_an_envs_own_close_cannot_hold_it_up(vec, harm):
    made = begun(vec(partial(Mischief, "close", harm)))
    close_in_time(made)


@pytest.mark.timing
def test_a_long_step_cannot_hold_it_up(vec):
    made = begun(vec(partial(Mischief, "step", partial(time.sleep, 60))))
    made.step_async([0])
    close_in_time(made)


def test_a_pool_that_is_forgotten_ends():
    made = begun(SubprocSC2VecEnv([Counting]))
    del made
    gc.collect()


def test_a_pool_that_has_failed_and_is_forgotten_is_collected():
    made = begun(SubprocSC2VecEnv([partial(Mischief, "step", partial(int, "no number"))]))
    with pytest.raises(UserCodeError):
        made.step([0])
    pool = weakref.ref(made.pool)
    del made
    gc.collect()
    assert pool() is None


@pytest.mark.parametrize("waits", ["step", "call"])
def test_it_can_be_closed_while_another_thread_waits(vec, waits):
    """The other thread waits for the pool, as `AsyncPPO`'s actor does."""
    made = begun(vec(partial(Hanging, waits)))
    raised: list[BaseException] = []

    def use() -> None:
        try:
            if waits == "step":
                made.step([0])
            else:
                made.env_method("area")
        except BaseException as error:
            raised.append(error)

    using = threading.Thread(target=use)
    using.start()
    while not made.pool._bookkeeping.in_another_thread():
        time.sleep(0.001)
    made.close()
    using.join(10.0)
    assert not using.is_alive()
    assert [type(error) for error in raised] == [ClosedError]
    assert psutil.Process().children() == []
