"""`SC2VectorEnv`: who resets an env that is over, and when; the infos of it."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from sc2pool.errors import ConfigError
from tests.contract.conftest import without_workers
from tests.contract.envs import Counting, Sampling
from tests.contract.tasks import Masked

pytestmark = without_workers

MODES = list(AutoresetMode)
LENGTHS = (2, 3)


def counting(vector, mode):
    """Two envs whose episodes have `LENGTHS` steps."""
    return vector(*(partial(Counting, length) for length in LENGTHS), autoreset_mode=mode)


def test_the_mode_is_told_by_each_instance(vector):
    for mode, given in [(MODES[1], MODES[1]), (MODES[2], MODES[2].value)]:
        assert vector(Counting, autoreset_mode=given).metadata["autoreset_mode"] is mode
    assert vector(Counting).metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert "autoreset_mode" not in Counting.metadata


def test_the_next_step_resets_by_default(vector):
    made = vector(*(partial(Counting, length) for length in LENGTHS))
    observations, infos = made.reset()
    assert observations.tolist() == [[0.0], [0.0]]
    assert infos["keywords"]["seed"].tolist() == infos["keywords"]["options"].tolist() == [None] * 2
    for shown, rewards, over, counts in [
        ([1, 1], [1, 1], [False, False], [1, 1]),
        ([2, 2], [2, 2], [True, False], [2, 2]),
        ([0, 3], [0, 3], [False, True], [0, 3]),
        ([1, 0], [1, 0], [False, False], [1, 0]),
        ([2, 1], [2, 1], [True, False], [2, 1]),
        ([0, 2], [0, 2], [False, False], [0, 2]),
    ]:
        observations, given, terminations, truncations, infos = made.step([1, 2])
        assert observations[:, 0].tolist() == shown
        assert (given.tolist(), given.dtype) == (rewards, np.float64)
        assert (terminations.tolist(), terminations.dtype) == (over, np.bool_)
        assert (truncations.tolist(), truncations.dtype) == ([False, False], np.bool_)
        assert infos["count"].tolist() == counts
        assert infos["_count"].tolist() == [count > 0 for count in counts], "0: a reset's info"
        assert infos.get("keywords", {}) == {}, "an autoreset passes no keywords"
    assert made.get_attr("actions") == ([1] * 4, [2] * 5), "a step that resets sends no action"
    assert made.stats().env_steps == 9
    assert made.stats().episodes == 3


def test_same_step_mode_resets_and_keeps_the_last_observation(vector):
    made = counting(vector, AutoresetMode.SAME_STEP)
    made.reset()
    for step in range(1, 7):
        observations, rewards, terminations, _, infos = made.step([0, 0])
        over = [step % length == 0 for length in LENGTHS]
        assert terminations.tolist() == over
        assert observations[:, 0].tolist() == [step % length for length in LENGTHS]
        assert rewards.tolist() == [(step - 1) % length + 1 for length in LENGTHS]
        assert ("final_obs" in infos) == ("final_info" in infos) == any(over)
        if any(over):
            assert infos["_final_obs"].tolist() == infos["_final_info"].tolist() == over
            for env, length in enumerate(LENGTHS):
                last = infos["final_obs"][env]
                assert (last is not None) == over[env]
                if over[env]:
                    assert last.tolist() == [float(length)]
                    assert infos["final_info"]["count"][env] == length
        assert ("_count" in infos) == (not all(over)), "an episode's last info is in final_info"


def test_disabled_waits_for_the_trainers_mask(vector):
    made = counting(vector, AutoresetMode.DISABLED)
    made.reset()
    made.step([0, 0])
    observations, _, terminations, _, _ = made.step([0, 0])
    assert (observations[:, 0].tolist(), terminations.tolist()) == ([2.0, 2.0], [True, False])
    with pytest.raises(ResetNeeded, match=r"envs \[0\] are over.*reset_mask"):
        made.step([0, 0])
    assert made.get_attr("count") == (2, 2), "nothing was sent"
    options = {"reset_mask": terminations, "level": 7}
    observations, infos = made.reset(seed=[5, 6], options=options)
    assert observations[:, 0].tolist() == [0.0, 2.0]
    assert infos["keywords"]["seed"].tolist() == [5, 0]
    assert infos["keywords"]["options"]["level"].tolist() == [7, 0]
    assert infos["_keywords"].tolist() == [True, False]
    assert options["reset_mask"] is terminations, "the caller's own dict is left as it is"
    assert made.step([0, 0])[0][:, 0].tolist() == [1.0, 3.0]


@pytest.mark.parametrize("mode", MODES)
def test_a_mask_begins_episodes_in_the_middle_of_others(vector, mode):
    made = counting(vector, mode)
    made.reset()
    made.step([0, 0])
    mask = np.array([False, True])
    assert made.reset(options={"reset_mask": mask})[0][:, 0].tolist() == [1.0, 0.0]
    made.step([0, 0])  # env 0 is over
    observations, _ = made.reset()
    assert observations[:, 0].tolist() == [0.0, 0.0], "a reset of all leaves no autoreset pending"
    assert made.step([0, 0])[0][:, 0].tolist() == [1.0, 1.0]


def test_the_first_reset_must_be_one_of_all(vector):
    made = counting(vector, AutoresetMode.DISABLED)
    with pytest.raises(ResetNeeded, match="of all envs"):
        made.reset(options={"reset_mask": np.array([True, False])})
    made.reset(options={"reset_mask": np.array([True, True])})


def test_options_that_are_no_dict(vector):
    with pytest.raises(ConfigError, match="options must be a dict, got 'level'"):
        counting(vector, AutoresetMode.DISABLED).reset(options="level")


def test_invalid_mask_is_an_error_and_resets_nothing(vector):
    made = counting(vector, AutoresetMode.DISABLED)
    made.reset()
    made.step([0, 0])
    for mask, error, told in [
        ([True, False], TypeError, "must be a numpy array, got <class 'list'>"),
        (np.array([1, 0]), TypeError, "`dtype=np.bool_`, got int64"),
        (np.array([True]), ValueError, r"must have shape `\(2,\)`, got \(1,\)"),
        (np.array([[True, False]]), ValueError, r"got \(1, 2\)"),
        (np.array([False, False]), ValueError, "at least one True value"),
    ]:
        with pytest.raises(error, match=told):
            made.reset(options={"reset_mask": mask})
    assert made.get_attr("count") == (1, 1)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_same_results_as_gymnasiums_own_class(vector, mode):
    def env():
        return Counting(length=4, end="truncated")

    ours = vector(env, env, autoreset_mode=mode)
    theirs = SyncVectorEnv([env, env], autoreset_mode=mode)
    np.testing.assert_equal(ours.reset(seed=3), theirs.reset(seed=3))
    for _ in range(10):
        np.testing.assert_equal(ours.step([1, 2]), theirs.step([1, 2]))
    theirs.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_task_goes_from_episode_to_episode(vector_task, mode):
    made = vector_task(Masked, autoreset_mode=mode, spares=1, seed=3)  # four steps long
    first, infos = made.reset()
    assert infos == {}
    for episode in range(3):
        for step in range(4):
            last, _, terminations, truncations, infos = made.step(np.zeros(2, np.int64))
            assert not terminations.any()
            assert truncations.tolist() == [step == 3] * 2
        if mode is AutoresetMode.SAME_STEP:
            assert infos["_final_obs"].all()
            shown = last
        elif mode is AutoresetMode.NEXT_STEP:
            shown, rewards, _, truncations, _ = made.step(np.zeros(2, np.int64))
            assert (rewards.tolist(), truncations.tolist()) == ([0.0] * 2, [False] * 2)
        else:
            shown, _ = made.reset(options={"reset_mask": truncations})
        assert not np.array_equal(shown, first), f"episode {episode + 1} is another"
        first = shown


def test_a_seeded_run_is_the_same_in_every_mode_and_with_any_spares(vector_task):
    runs = []
    for mode, spares in [(MODES[0], 1), (MODES[1], 0), (MODES[2], 0)]:
        made = vector_task(Masked, autoreset_mode=mode, spares=spares)
        shown = [made.reset(seed=8)[0]]
        for _ in range(2):
            for _ in range(4):
                last, _, _, truncations, _ = made.step(np.zeros(2, np.int64))
            if mode is AutoresetMode.NEXT_STEP:
                last = made.step(np.zeros(2, np.int64))[0]
            elif mode is AutoresetMode.DISABLED:
                last = made.reset(options={"reset_mask": truncations})[0]
            shown.append(last)
        runs.append(np.array(shown))
        made.close()
    for run in runs[1:]:
        np.testing.assert_array_equal(run, runs[0])


def test_final_observations_of_spaces_without_fixed_layout(vector):
    class Speaking(Sampling):
        def step(self, action):
            observation, reward, _, _, info = super().step(action)
            return observation, reward, True, False, info

    space = spaces.Dict(word=spaces.Text(5), place=spaces.Box(0, 1, (2,)))
    made = vector(
        *[partial(Speaking, space, spaces.Discrete(2))] * 2,
        autoreset_mode=AutoresetMode.SAME_STEP,
    )
    assert made.reset()[0] in made.observation_space
    observations, _, _, _, infos = made.step([0, 1])
    assert observations in made.observation_space
    assert all(last in space for last in infos["final_obs"])


def test_the_last_observation_is_an_int_of_a_discrete_space_and_an_array_of_a_box(vector):
    class Number(Counting):
        observation_space = spaces.Dict(a=spaces.Discrete(9), b=spaces.Box(0, 9, (), np.float32))

        def reset(self, **keywords):
            _, info = super().reset(**keywords)
            return {"a": 0, "b": np.float32(0)}, info

        def step(self, action):
            observation, *others = super().step(action)
            count = int(observation[0])
            return {"a": count, "b": np.float32(count)}, *others

    made = vector(partial(Number, 1), autoreset_mode=AutoresetMode.SAME_STEP)
    made.reset()
    last = made.step([0])[4]["final_obs"][0]
    assert (last["a"], type(last["a"])) == (1, int)
    assert (last["b"], type(last["b"]), last["b"].dtype) == (1.0, np.ndarray, np.float32)
