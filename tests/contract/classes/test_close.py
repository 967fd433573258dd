"""Clause 9: `close` is bounded, and may be called at any time and again."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from functools import partial
from pathlib import Path

import psutil
import pytest

from sc2pool import SubprocSC2VecEnv
from sc2pool.errors import ClosedError, UserCodeError
from tests.contract.conftest import without_workers
from tests.contract.envs import Counting, Hanging, Mischief

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
    """Fails where closing takes longer than it may."""
    begin_s = time.monotonic()
    made.close()
    assert time.monotonic() - begin_s < 5.0


@without_workers
def test_closed_is_closed(vec):
    made = vec(Counting)
    made.reset()
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
    made = vec(*(partial(Mischief, "close", file.touch) for file in files))
    made.reset()
    made.close()
    assert all(file.exists() for file in files)


@pytest.mark.timing
@pytest.mark.parametrize(
    "harm",
    [partial(time.sleep, 60), partial(int, "no number")],
    ids=["that never ends", "that raises"],
)
def test_an_envs_own_close_cannot_hold_it_up(vec, harm):
    made = vec(partial(Mischief, "close", harm))
    made.reset()
    close_in_time(made)


@pytest.mark.timing
def test_a_long_step_cannot_hold_it_up(vec):
    made = vec(partial(Mischief, "step", partial(time.sleep, 60)))
    made.reset()
    made.step_async([0])
    close_in_time(made)


def test_a_pool_that_is_forgotten_ends():
    made = SubprocSC2VecEnv([Counting])
    made.reset()
    del made
    gc.collect()


def test_a_pool_that_has_failed_and_is_forgotten_is_collected():
    made = SubprocSC2VecEnv([partial(Mischief, "step", partial(int, "no number"))])
    made.reset()
    with pytest.raises(UserCodeError):
        made.step([0])
    pool = weakref.ref(made.pool)
    del made
    gc.collect()
    assert pool() is None


@pytest.mark.parametrize("waits", ["step", "call"])
def test_it_can_be_closed_while_another_thread_waits(vec, waits):
    """As `AsyncPPO`'s actor does."""
    made = vec(partial(Hanging, waits))
    made.reset()
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
