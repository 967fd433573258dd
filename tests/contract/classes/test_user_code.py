"""Whatever user code raises, returns or passes on, errors name their env; no pool deadlocks."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest
from gymnasium import spaces

from sc2pool import SC2GymEnv, SubprocSC2VecEnv
from sc2pool.errors import ClosedError, ConfigError, ObservationError, UserCodeError
from tests.contract.conftest import without_workers
from tests.contract.envs import (
    Answering,
    Counting,
    Mischief,
    OldInterface,
    RaisesWhenUnpickled,
    Sampling,
    raise_cancelled,
    raise_of_two,
)
from tests.support.pools import begun
from tests.support.programs import run


@pytest.mark.timing
@pytest.mark.parametrize(
    ("when", "phase", "harm", "told"),
    [
        ("init", "launching", raise_of_two, "OfTwo: of two"),
        ("init", "launching", partial(sys.exit, 3), "SystemExit: 3"),
        ("init", "launching", raise_cancelled, "CancelledError: by the user"),
        ("reset", "resetting", partial(int, "no number"), "ValueError: invalid literal"),
        ("reset", "resetting", raise_cancelled, "CancelledError: by the user"),
        ("step", "stepping", raise_of_two, "OfTwo: of two"),
        ("step", "stepping", partial(sys.exit, 3), "SystemExit: 3"),
        ("step", "stepping", partial(next, iter(())), "StopIteration"),
        ("step", "stepping", raise_cancelled, "CancelledError: by the user"),
    ],
)
def test_exception_of_an_env_ends_the_pool_with_its_traceback(vec, when, phase, harm, told):
    begin_s = time.monotonic()
    with pytest.raises(UserCodeError) as raised:
        made = begun(vec(Counting, partial(Mischief, when, harm)))
        made.step([0, 0])
    assert time.monotonic() - begin_s < 10.0, "no deadline has passed"
    message = str(raised.value)
    assert message.startswith(f"env 1: the user's code raised while {phase}: {told}")
    assert "in at\n" in message, "the line of the user's that raised"


def test_after_it_every_call_says_so_and_close_works(vec):
    made = begun(vec(partial(Mischief, "step", partial(int, "no number"))))
    with pytest.raises(UserCodeError) as raised:
        made.step([0])
    assert type(raised.value.__cause__) is ValueError, "itself, as it can travel"
    for call in (made.reset, partial(made.step, [0]), partial(made.get_attr, "count")):
        with pytest.raises(ClosedError, match=r"pool has failed.*no number"):
            call()
    made.close()
    made.close()


def test_an_env_that_ends_its_process_is_replaced(vec):
    made = begun(vec(Counting, partial(Mischief, "step", partial(os._exit, 4))))
    made.set_attr("length", 9, indices=1)
    observations, rewards, dones, infos = made.step([0, 0])
    assert dones.tolist() == [False, True]
    assert observations.tolist() == [[1.0], [0.0]]
    assert rewards.tolist() == [1.0, 0.0]
    assert infos[1]["sc2pool.fault"]["detail"] == "the worker exited with status 4"
    assert made.get_attr("length") == [3, 9], "set_attr survives a replaced instance"


@pytest.mark.parametrize(
    ("answer", "error", "told"),
    [
        ({"observation": np.zeros(2)}, ObservationError, r"shape \(2,\).*expected shape \(1,\)"),
        ({"reward": "much"}, UserCodeError, "the reward is 'much', expected one number"),
        ({"reward": np.ones(2)}, UserCodeError, "reward is .* can only convert an array of size 1"),
        (
            {"observation": ["a"]},
            ObservationError,
            r"is \['a'\] of type list, expected dtype float32",
        ),
        ({"info": [1]}, ObservationError, r"the info is \[1\], expected a dict"),
        ({"info": {"sc2pool.fault": {}}}, UserCodeError, "info has the key 'sc2pool.fault'"),
        ({"info": {"bad": RaisesWhenUnpickled()}}, UserCodeError, "unpickled: OfTwo: of two"),
    ],
)
def test_wrong_returns_are_told(vec, answer, error, told):
    made = begun(vec(partial(Answering, **answer)))
    with pytest.raises(error, match=f"(?s)env 0.*(stepping|its info).*{told}"):
        made.step([0])
    assert psutil.Process().children() == []


@without_workers
def test_an_env_of_the_interface_before_gymnasium_is_told(vec):
    for method, told in [
        ("reset", r"reset\(\) returned a ndarray, expected observation and info"),
        ("step", r"step\(\) returned a tuple of 4, expected observation, reward, terminated"),
    ]:
        made = vec(partial(OldInterface, method))
        with pytest.raises(ObservationError, match=told):
            made.step([0])
    with pytest.raises(
        ConfigError, match=r"env_fns\[0\] has the observation_space \(1,\), expected"
    ):
        vec(partial(OldInterface, space=(1,)))


def test_an_env_that_is_a_pool_may_report_its_faults(vec, standin_dir):
    made = begun(vec(partial(SC2GymEnv, "MoveToBeacon", game=standin_dir)))
    (game,) = (
        child for child in psutil.Process().children(recursive=True) if "-listen" in child.cmdline()
    )
    game.kill()
    _, _, dones, infos = made.step([0])
    assert dones.tolist() == [True]
    assert infos[0]["sc2pool.fault"]["kind"] == "game-exited"


def test_a_part_missing_from_an_observation_is_told(vec):
    space = spaces.Dict(a=spaces.Discrete(2), b=spaces.Discrete(2))

    def lacking() -> Sampling:
        env = Sampling(space, spaces.Discrete(2))
        env.reset = lambda **_: ({"a": 1}, {})
        return env

    made = vec(lacking)
    with pytest.raises(ObservationError, match=r"env 0, resetting.*KeyError\('b'\)"):
        made.reset()


def test_an_info_that_cannot_travel_is_the_users_error(vec):
    made = begun(vec(lambda: Answering(info={"lock": threading.Lock()})))
    with pytest.raises(UserCodeError, match=r"env 0.*while stepping: TypeError: cannot pickle"):
        made.step([0])


def test_info_may_hold_values_that_only_cloudpickle_takes(vec):
    made = vec(partial(Answering, info={"double": lambda x: 2 * x, "class": threading.RLock}))
    made.reset()
    info = made.step([0])[3][0]
    assert (info["double"](4), info["class"]) == (8, threading.RLock)


@pytest.mark.timing
def test_large_infos_do_not_deadlock_with_large_arguments(vec):
    made = begun(vec(partial(Answering, info={"large": np.zeros(2_000_000)})))
    made.step_async([0])
    begin_s = time.monotonic()
    made.set_attr("large", np.zeros(2_000_000))
    assert made.step_wait()[3][0]["large"].size == 2_000_000
    assert time.monotonic() - begin_s < 4.0


def test_a_function_may_carry_much(vec):
    cargo = np.zeros(4_000_000)
    made = begun(vec(partial(Answering, info={"size": cargo.size}, observation=cargo[:1])))
    assert made.step([0])[3][0]["size"] == 4_000_000


def test_classes_of_main_travel_both_ways(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(MAIN_SCRIPT)
    done = run(sys.executable, script)
    assert (done.returncode, done.stdout) == (0, "note 3\n"), done.stderr


MAIN_SCRIPT = """
from dataclasses import dataclass

import gymnasium
from gymnasium import spaces

from sc2pool import SC2VectorEnv


@dataclass
class Note:
    number: int


class Env(gymnasium.Env):
    observation_space = action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        return 1, 0.0, False, False, {"note": Note(3)}


# No guard of `__name__`: workers do not import the script.
made = SC2VectorEnv([Env, Env])
made.reset()
note = made.step([0, 1])[4]["note"][1]
assert type(note) is Note
print("note", note.number)
made.close()
"""


def test_a_failed_construction_leaves_the_others_alone(vec):
    made = begun(vec(Counting))
    with pytest.raises(UserCodeError):
        SubprocSC2VecEnv([partial(Mischief, "init", raise_of_two)] * 2)
    assert made.step([0])[0].tolist() == [[1.0]]


@pytest.mark.parametrize("chosen", [None, "2"])
def test_numpy_has_one_thread_in_a_worker_unless_the_user_says_otherwise(vec, monkeypatch, chosen):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if chosen is not None:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", chosen)
    worker = psutil.Process(vec(Counting).stats().instances[0].worker_pid)
    assert worker.environ()["OPENBLAS_NUM_THREADS"] == (chosen or "1")


def test_a_breakpoint_in_a_worker_names_the_class_to_use(vec):
    made = begun(vec(partial(Mischief, "step", breakpoint)))
    with pytest.raises(UserCodeError, match=r"stepping: BdbQuit: breakpoint.. needs a terminal"):
        made.step([0])


@pytest.mark.parametrize("serial", [False, True], ids=["workers", "serial"])
@pytest.mark.parametrize("returned", [None, Counting], ids=["nothing", "a class"])
def test_a_function_that_returns_no_env_is_named(vec, returned):
    told = re.escape(f"env_fns[1] returned {returned!r}, expected a gymnasium.Env")
    with pytest.raises(ConfigError, match=told):
        vec(Counting, partial(next, iter([returned])))


class Incomplete(Counting):
    """An env without one of its spaces."""

    def __init__(self, lacks: str) -> None:
        super().__init__()
        setattr(self, lacks, None)


@pytest.mark.parametrize("lacks", ["observation_space", "action_space"])
def test_a_missing_space_is_named(vec, lacks):
    with pytest.raises(ConfigError, match=rf"env_fns\[1\] has the {lacks} None, expected a space"):
        vec(Counting, partial(Incomplete, lacks))


def test_a_function_that_cannot_be_pickled_is_named(vec):
    with pytest.raises(TypeError, match="cannot pickle") as raised:
        vec(Counting, partial(Counting, threading.Lock()))
    assert "it cannot be pickled for env 1" in raised.value.__notes__


@pytest.mark.parametrize("imported", ["torch", "math"])
def test_a_task_whose_module_imports_torch_warns_once(
    vec_task, tmp_path, monkeypatch, caplog, imported
):
    (tmp_path / f"with_{imported}.py").write_text(
        f"import {imported}\n"
        "from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon\n\n\n"
        "class Own(MoveToBeacon):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    vec_task(f"with_{imported}:Own", n=2).reset()
    warnings = caplog.text.count("imports torch, which takes some 240 MB in each worker")
    assert warnings == (imported == "torch")


SCRIPT = """
import multiprocessing
import sys

from sc2pool import SC2VectorEnv
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon


class Note:
    def __init__(self, loop):
        self.loop = loop


class Noting(MoveToBeacon):
    def info(self):
        return {"note": Note(self.observation.game_loop)}


def trial(results):
    env = SC2VectorEnv(n=1, task=Noting, game=sys.argv[2])
    env.reset()
    note = env.step([0])[4]["note"][0]
    results.put((note.loop, type(note) is Note))
    env.close()


if __name__ == "__main__":
    method = multiprocessing.get_context(sys.argv[1])
    results = method.SimpleQueue()
    child = method.Process(target=trial, args=(results,))
    child.start()
    child.join()
    assert child.exitcode == 0, child.exitcode
    print(results.get())
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_child_makes_a_pool_of_the_scripts_task(
    standin_dir: Path, tmp_path: Path, method: str
) -> None:
    script = tmp_path / "search.py"
    script.write_text(SCRIPT)
    ran = run(sys.executable, script, method, standin_dir)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "(8, True)\n"
