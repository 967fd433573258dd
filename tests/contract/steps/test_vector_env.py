"""`SC2VectorEnv`: autoreset modes and infos, calls out of order, timeouts, attributes, `close`."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import (
    AlreadyPendingCallError,
    ClosedEnvironmentError,
    NoAsyncCallError,
    ResetNeeded,
)
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from sc2pool.errors import ActionError, ConfigError, InterruptedCallError, UserCodeError
from tests.contract.conftest import without_workers
from tests.contract.envs import Counting, Crowded, Drawing, Gated, Mischief
from tests.contract.tasks import Masked
from tests.support.pools import begun

MODES = list(AutoresetMode)
LENGTHS = (2, 3)


def counting(vector, mode):
    """Two envs whose episodes have `LENGTHS` steps."""
    return vector(*(partial(Counting, length) for length in LENGTHS), autoreset_mode=mode)


@without_workers
def test_the_mode_is_told_by_each_instance(vector):
    for mode, given in [(MODES[1], MODES[1]), (MODES[2], MODES[2].value)]:
        assert vector(Counting, autoreset_mode=given).metadata["autoreset_mode"] is mode
    assert vector(Counting).metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert "autoreset_mode" not in Counting.metadata


@without_workers
def test_the_next_step_resets_by_default(vector):
    made = begun(vector(*(partial(Counting, length) for length in LENGTHS)))
    for counts in ([1, 1], [2, 2], [0, 3], [1, 0], [2, 1], [0, 2]):
        observations, given, terminations, truncations, infos = made.step([1, 2])
        assert observations[:, 0].tolist() == counts
        assert (given.dtype, terminations.dtype, truncations.dtype) == (float, bool, bool)
        assert infos.get("keywords", {}) == {}, "an autoreset passes no keywords"
    assert made.get_attr("actions") == ([1] * 4, [2] * 5), "a step that resets sends no action"
    assert made.stats().env_steps == 9
    assert made.stats().episodes == 3


@without_workers
def test_disabled_waits_for_the_trainers_mask(vector):
    made = begun(counting(vector, AutoresetMode.DISABLED))
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


@without_workers
@pytest.mark.parametrize("mode", MODES)
def test_a_mask_begins_episodes_in_the_middle_of_others(vector, mode):
    made = begun(counting(vector, mode))
    made.step([0, 0])
    mask = np.array([False, True])
    assert made.reset(options={"reset_mask": mask})[0][:, 0].tolist() == [1.0, 0.0]
    made.step([0, 0])  # the episode of env 0 is over
    observations, _ = made.reset()
    assert observations[:, 0].tolist() == [0.0, 0.0], "a reset of all leaves no autoreset pending"
    assert made.step([0, 0])[0][:, 0].tolist() == [1.0, 1.0]


@without_workers
def test_the_first_reset_must_be_one_of_all_with_options_in_a_dict(vector):
    made = counting(vector, AutoresetMode.DISABLED)
    with pytest.raises(ConfigError, match="options must be a dict, got 'level'"):
        made.reset(options="level")
    with pytest.raises(ResetNeeded, match="of all envs"):
        made.reset(options={"reset_mask": np.array([True, False])})
    made.reset(options={"reset_mask": np.array([True, True])})


@without_workers
def test_invalid_mask_is_an_error_and_resets_nothing(vector):
    made = begun(counting(vector, AutoresetMode.DISABLED))
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


@without_workers
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize("end", ["terminated", "truncated", "both"])
def test_same_results_as_gymnasiums_own_class(vector, mode, end):
    env_fns = [partial(Counting, length, end) for length in LENGTHS]
    ours = vector(*env_fns, autoreset_mode=mode)
    theirs = SyncVectorEnv(env_fns, autoreset_mode=mode)
    np.testing.assert_equal(ours.reset(seed=3), theirs.reset(seed=3))
    for _ in range(10):
        np.testing.assert_equal(ours.step([1, 2]), theirs.step([1, 2]))
    theirs.close()


@without_workers
def test_a_seeded_run_is_the_same_in_every_mode_and_with_any_spares(vector_task):
    runs = []
    nothing = np.zeros(2, np.int64)
    for mode, spares in zip(MODES, (1, 0, 1), strict=True):
        made = vector_task(Masked, autoreset_mode=mode, spares=spares)  # an episode has 4 steps
        first, infos = made.reset(seed=8)
        assert infos == {}
        shown = [first]
        for _ in range(3):
            for step in range(4):
                last, _, terminations, truncations, infos = made.step(nothing)
                assert not terminations.any()
                assert truncations.tolist() == [step == 3] * 2
            if mode is AutoresetMode.SAME_STEP:
                assert infos["_final_obs"].all()
            elif mode is AutoresetMode.NEXT_STEP:
                last, rewards, _, truncations, _ = made.step(nothing)
                assert (rewards.tolist(), truncations.tolist()) == ([0.0] * 2, [False] * 2)
            else:
                last, _ = made.reset(options={"reset_mask": truncations})
            assert not np.array_equal(last, shown[-1]), "another episode"
            shown.append(last)
        runs.append(shown)
        made.close()
    for run in runs[1:]:
        np.testing.assert_array_equal(run, runs[0])


@without_workers
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

    made = begun(vector(partial(Number, 1), autoreset_mode=AutoresetMode.SAME_STEP))
    last = made.step([0])[4]["final_obs"][0]
    assert (last["a"], type(last["a"])) == (1, int)
    assert (last["b"], type(last["b"]), last["b"].dtype) == (1.0, np.ndarray, np.float32)


ASYNC = {"reset": (), "step": ([0, 0],), "call": ("area",)}


@pytest.fixture
def two(vector):
    """Two envs that were reset."""
    return begun(vector(Counting, Counting))


def test_one_call_at_a_time(two):
    for pending, pending_arguments in ASYNC.items():
        for name in ASYNC:
            told = f"Calling `{name}_wait` without any prior call to `{name}_async`"
            with pytest.raises(NoAsyncCallError, match=told):
                getattr(two, f"{name}_wait")()
        getattr(two, f"{pending}_async")(*pending_arguments)
        for name, arguments in ASYNC.items():
            told = f"Calling `{name}_async` while waiting for a pending call to `{pending}`"
            with pytest.raises(AlreadyPendingCallError, match=told):
                getattr(two, f"{name}_async")(*arguments)
        with pytest.raises(AlreadyPendingCallError, match="Calling `set_attr`"):
            two.set_attr("count", 5)
        getattr(two, f"{pending}_wait")()
    assert two.get_attr("count") == (1, 1)


@pytest.mark.parametrize("pending", ["reset", "step"])
def test_late_reply_is_delivered_on_next_wait(vector, tmp_path, pending):
    gate = tmp_path / "gate"
    gate.touch()
    made = begun(vector(partial(Gated, str(gate), length=9), Counting))
    gate.unlink()
    made.step_async([1, 1])
    for _ in range(2):
        with pytest.raises(multiprocessing.TimeoutError, match=r"`step_wait` has timed out.*0.05"):
            made.step_wait(timeout=0.05)
    gate.touch()
    assert made.step_wait()[0].tolist() == [[1.0], [1.0]], "it may be waited for again"
    gate.unlink()
    made.step_async([2, 2])
    with pytest.raises(multiprocessing.TimeoutError):
        made.step_wait(timeout=0.05)
    gate.touch()
    if pending == "step":
        assert made.step([3, 3])[0].tolist() == [[3.0], [3.0]], "the answer to this step, no other"
        assert made.get_attr("actions") == ([1, 2, 3], [1, 2, 3])
    else:
        assert made.reset()[0].tolist() == [[0.0], [0.0]]
    with pytest.raises(NoAsyncCallError):
        made.step_wait()


def test_another_thread_does_not_take_the_step_that_a_thread_waits_for(vector, tmp_path, wait_for):
    made = begun(vector(partial(Gated, str(tmp_path / "gate"), length=9)))
    with ThreadPoolExecutor(1) as thread:
        waits = thread.submit(made.step, [1])
        wait_for(lambda: made._pending.late)
        for call in (partial(made.step, [2]), made.reset, partial(made.set_attr, "length", 9)):
            with pytest.raises(InterruptedCallError, match="another thread is in a call"):
                call()
        (tmp_path / "gate").touch()
        assert waits.result(10.0)[0].tolist() == [[1.0]]
    assert made.step([2])[0].tolist() == [[2.0]]


def test_a_call_may_time_out_and_its_answer_is_dropped(two):
    with pytest.raises(multiprocessing.TimeoutError, match="have not answered in time"):
        two.call_async("area")
        two.call_wait(timeout=0.0)
    assert two.call("area", 1, width=3)[0].shape == (1, 3)


def test_a_pending_step_that_ends_an_episode_too_late_is_dropped_whole(vector, tmp_path):
    gate = tmp_path / "gate"
    made = begun(vector(partial(Gated, str(gate), length=1)))
    made.step_async([0])
    with pytest.raises(multiprocessing.TimeoutError):
        made.step_wait(timeout=0.05)
    gate.touch()
    observations, rewards, terminations, _, _ = made.step([0])
    assert (observations.tolist(), rewards.tolist()) == ([[0.0]], [0.0]), "the reset after it"
    assert not terminations.any()


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_at_most_so_many_run_at_one_time(vector, mode, tmp_path):
    made = vector(
        *[partial(Crowded, str(tmp_path), length=2)] * 4, autoreset_mode=mode, max_concurrency=2
    )
    made.reset()
    actions = np.arange(4)
    for _ in range(3):
        made.step_async(actions)
        actions[:] = 9  # the pool must still use the actions that `step_async` got
        _, _, terminations, _, _ = made.step_wait()
        actions[:] = np.arange(4)
        if mode is AutoresetMode.DISABLED and terminations.any():
            made.reset(options={"reset_mask": terminations})
    assert max(made.get_attr("most")) == 2
    assert [set(sent) for sent in made.get_attr("actions")] == [{env} for env in range(4)]


def test_wrong_batch_is_an_error_and_nothing_is_sent(two):
    for wrong in ([0], [0, 0, 0]):
        for actions in (wrong, np.array(wrong)):
            with pytest.raises(ValueError, match="expected 2 actions, one per env"):
                two.step(actions)
    for actions in (0, None, np.array(0)):
        with pytest.raises(TypeError):
            two.step(actions)
    assert two.get_attr("actions") == ([], [])
    assert two.step([0, 0])[0].tolist() == [[1.0], [1.0]]


def test_a_tasks_actions_are_checked(vector_task):
    made = vector_task(Masked)
    with pytest.raises(ResetNeeded):
        made.step([0, 0])
    made.reset()
    with pytest.raises(TypeError):
        made.step(0)
    for wrong in ([0], [0, 8], np.array([0.5, 1.0])):
        with pytest.raises(ActionError):
            made.step(wrong)
    for _ in range(4):
        assert (np.array(made.call("action_masks")).sum(axis=1) == 1).all()
        made.step(np.array([0, 7]))
    made.step([99, 99])  # both episodes are over, so the actions are ignored
    with pytest.raises(ActionError):
        made.step([0, 99])


def test_attributes_and_methods(vector):
    made = vector(partial(Drawing, 1), partial(Drawing, 2))
    assert made.render_mode == "rgb_array"
    made.reset()
    assert made.get_attr("colour") == made.call("colour") == (1, 2)
    made.set_attr("colour", [5, 6])
    assert [frame[0, 0, 0] for frame in made.render()] == [5, 6]
    made.set_attr("colour", 7)
    assert made.get_attr("colour") == (7, 7)
    with pytest.raises(ValueError, match="Got `3` values for 2 environments"):
        made.set_attr("colour", [1, 2, 3])
    for name in ("reset", "step", "close"):
        with pytest.raises(ValueError, match=f"use `{name}` directly"):
            made.call(name)
    with pytest.raises(LookupError, match="as asked"):
        made.call("fail")
    with pytest.raises(AttributeError):
        made.call("no_such_thing")
    assert made.step([0, 0])[0].tolist() == [[1.0], [1.0]], "an error in a call ends nothing"


@without_workers
def test_a_task_without_pictures_says_so(vector_task):
    made = begun(vector_task(Masked, n=1))
    with pytest.warns(UserWarning, match="render_mode is None"):
        assert made.render() is None
    assert isinstance(made.np_random, np.random.Generator)


def test_exceptions_of_envs_are_raised_unchanged_and_all_are_named(vector):
    harm = partial(int, "no number")
    made = begun(vector(*[partial(Mischief, "step", harm)] * 2, Counting))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(ValueError, match="invalid literal for int") as raised:
            made.step([0, 0, 0])
    assert not isinstance(raised.value, UserCodeError)
    assert "--- traceback ---" in str(raised.value.__cause__)
    told = [str(warning.message) for warning in told]
    assert len(told) == 5
    for worker in (0, 1):
        assert any(f"error from Worker-{worker} - Shutting it down" in line for line in told)
    assert sum("ValueError: invalid literal" in line for line in told) == 2
    assert "Raising the last exception" in told[4]
    for call in (made.reset, partial(made.step, [0, 0, 0]), partial(made.get_attr, "count")):
        with pytest.raises(ClosedEnvironmentError, match="pool has failed"):
            call()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.close()


def test_exception_of_an_envs_constructor(vector):
    with pytest.raises(ZeroDivisionError):
        vector(Counting, partial(Mischief, "init", partial(divmod, 1, 0)))


def test_closed_is_closed(two):
    for _ in range(2):
        two.close()
    assert two.closed
    for call in (
        two.reset,
        two.step_wait,
        two.reset_wait,
        two.call_wait,
        two.render,
        partial(two.step, [0, 0]),
        partial(two.get_attr, "count"),
        partial(two.set_attr, "count", 1),
    ):
        with pytest.raises(ClosedEnvironmentError, match="after a call to `close"):
            call()


@pytest.mark.timing
@pytest.mark.parametrize(
    "keywords", [{}, {"terminate": True}, {"timeout": 0.2}], ids=["default", "terminate", "timeout"]
)
def test_close_is_bounded_with_a_pending_call(vector, keywords):
    made = begun(vector(partial(Mischief, "step", partial(time.sleep, 60))))
    made.step_async([0])
    begin_s = time.monotonic()
    with pytest.warns(UserWarning, match="Calling `close` while waiting for a pending call to `st"):
        made.close(**keywords)
    assert time.monotonic() - begin_s < 5.0


def test_envs_get_the_time_they_are_given_to_close(vector, tmp_path):
    for name, keywords, closes in [("one", {}, True), ("two", {"terminate": True}, False)]:
        made = begun(vector(partial(Mischief, "close", (tmp_path / name).touch)))
        made.close(**keywords)
        assert (tmp_path / name).exists() == closes


def test_a_batch_is_never_written_again(vector):
    made = vector(*[partial(Counting, 2)] * 2, copy=False, autoreset_mode=AutoresetMode.DISABLED)
    first, _ = made.reset()
    second, _, over, _, _ = made.step([0, 0])
    made.step([0, 0])
    masked, _ = made.reset(options={"reset_mask": ~over})
    for batch, was in [(first, 0.0), (second, 1.0), (masked, 0.0)]:
        assert batch.tolist() == [[was]] * 2
        batch[...] = 99
    assert made.step([0, 0])[0].tolist() == [[1.0], [1.0]]
