"""Tests that a trainer continues after Ctrl-C, a stop, a full disk or a fork, and on a terminal.

After Ctrl-C in a session that continues, as in a notebook, the next reset gives a working pool. The
tests raise an interrupt at the beginning of a chosen call of the package's functions, so that an
instant can be tried again. Python itself handles signals at the beginning of functions and after
calls. The script `scripts/chaos.py` tries thousands of instants by a timer.

A trainer also works if the folder for temporary files or caches is read-only or not executable.
"""

from __future__ import annotations

import multiprocessing
import os
import pty
import signal
import subprocess
import sys
import termios
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import psutil
import pytest

import sc2pool
from sc2pool import SC2VectorEnv, SubprocSC2VecEnv
from sc2pool.errors import ClosedError, ForkedPoolError, InterruptedCallError
from sc2pool.pool.pool import Pool
from sc2pool.pool.queues.doorbell import Waiter
from sc2pool.processes.spawn import submit
from tests.contract.envs import Counting
from tests.support.programs import assert_gone, run

PACKAGE = str(Path(sc2pool.__file__).parent)
N = 2
ACTIONS = np.zeros(N, np.int64)
WAITER = type(Waiter.create())


@contextmanager
def interrupt_at(call: int) -> Iterator[list[int]]:
    """Raise KeyboardInterrupt when a chosen call of one of the package's functions begins.

    Args:
        call: the number of the call, counted from the block's start; 0 for no interrupt.

    Yields a list of one number: how many calls have begun.
    """
    calls = [0]

    def trace(frame: FrameType, event: str, _: Any) -> None:
        del event
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return
        calls[0] += 1
        if calls[0] == call:
            sys.settrace(None)
            raise KeyboardInterrupt

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield calls
    finally:
        sys.settrace(before)


def calls_in(work: Callable[[], Any]) -> int:
    """The number of calls of the package's functions in some work; waits may change the number."""
    with interrupt_at(0) as calls:
        work()
    return calls[0]


def assert_it_works(env: Any, step: Callable[[], Any]) -> None:
    observations = env.reset()
    if isinstance(observations, tuple):
        observations = observations[0]
    assert observations.tolist() == [[0.0]] * N
    for number in (1.0, 2.0):
        assert step()[0].tolist() == [[number]] * N


@pytest.mark.parametrize("env_class", [SubprocSC2VecEnv, SC2VectorEnv])
@pytest.mark.parametrize("what", ["step", "reset"])
def test_at_any_instant_of_a_call(env_class, what):
    env = env_class([Counting] * N)

    def step() -> Any:
        return env.step(ACTIONS)

    work = {"step": step, "reset": env.reset}[what]
    env.reset()
    fewest = min(calls_in(work) for _ in range(3))
    struck = 0
    for part in (0.0, 0.4, 0.8):
        env.reset()
        try:
            with interrupt_at(1 + int(part * fewest)):
                work()  # work may end before the chosen call, because short waits make fewer calls
        except KeyboardInterrupt:
            struck += 1
        assert_it_works(env, step)
        assert len(psutil.Process().children()) == N
    assert struck > 0
    env.close()


@pytest.fixture
def env() -> Iterator[SubprocSC2VecEnv]:
    """Envs that have been reset, and that are closed after the test."""
    with closing(SubprocSC2VecEnv([Counting] * N)) as made:
        made.reset()
        yield made


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_torn_records_say_so_until_the_reset(env, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("sc2pool.pool.stepping.Stepping.begin", interrupted)
        with pytest.raises(KeyboardInterrupt):
            env.reset()
    for call in (
        lambda: env.step(ACTIONS),
        env.pause,
        lambda: env.get_attr("count"),
        lambda: env.set_attr("count", 1),
    ):
        with pytest.raises(InterruptedCallError, match="reset all envs first"):
            call()
    assert env.stats().instances[0].state
    assert_it_works(env, lambda: env.step(ACTIONS))


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_at_any_instant_of_the_construction_and_the_end(part):
    """Nothing may be left of a pool whose construction or close was interrupted."""
    whole: list[SubprocSC2VecEnv] = []
    construction = calls_in(lambda: whole.append(SubprocSC2VecEnv([Counting])))
    end = calls_in(whole[0].close)
    before = psutil.Process().num_fds()
    made: list[SubprocSC2VecEnv] = []
    with interrupt_at(1 + int(part * construction)), suppress(KeyboardInterrupt):
        made.append(SubprocSC2VecEnv([Counting]))
    for one in made:
        one.close()
    env = SubprocSC2VecEnv([Counting])
    env.reset()
    with interrupt_at(1 + int(part * end)), suppress(KeyboardInterrupt):
        env.close()
    env.close()
    assert psutil.Process().num_fds() == before
    assert not psutil.Process().children()


@pytest.mark.parametrize("envs", [[1], None], ids=["some", "all"])
def test_an_interrupted_recv_may_be_asked_again(env, monkeypatch, envs):
    """If an interrupt comes while no record is being changed, only the interrupted call fails."""
    workers = psutil.Process().children()
    pool: Pool = env.pool
    rows = [1] if envs else list(range(N))
    number = 1
    pool.send(ACTIONS[rows], envs)
    with monkeypatch.context() as patch:
        patch.setattr(WAITER, "wait", interrupted)
        patch.setattr(WAITER, "wait_for", interrupted)
        with pytest.raises(KeyboardInterrupt):
            while True:  # repeats until a call has to wait, because replies may come early
                assert pool.recv().observations.tolist() == [[number % 3]] * len(rows)
                number += 1
                pool.send(ACTIONS[rows], envs)
    batch = pool.recv()
    assert batch.envs.tolist() == rows
    assert batch.observations.tolist() == [[number % 3]] * len(rows)
    assert_it_works(env, lambda: env.step(ACTIONS))
    assert psutil.Process().children() == workers


def test_an_alarm_of_the_users_in_the_construction_arrives(monkeypatch):
    """The alarm's TimeoutError is an OSError, but must not count as a process that cannot start."""

    def interrupted(work: Callable[[], Any]) -> Any:
        submit(work).result()
        raise TimeoutError("the user's alarm")

    monkeypatch.setattr("sc2pool.pool.instances.instance.uninterrupted", interrupted)
    with pytest.raises(TimeoutError, match="the user's alarm"):
        SubprocSC2VecEnv([Counting])
    assert not psutil.Process().children()


@pytest.mark.parametrize("call", ["step", "reset"])
def test_a_handler_that_closes_ends_the_call_with_closed_error(env, monkeypatch, call):
    def closing_before(original: Callable[..., Any]) -> Callable[..., Any]:
        def wait(*arguments: Any) -> Any:
            env.close()  # closes the envs, as a signal handler may do
            return original(*arguments)

        return wait

    for name in ("wait", "wait_for"):
        monkeypatch.setattr(WAITER, name, closing_before(getattr(WAITER, name)))
    with pytest.raises(ClosedError, match=r"has closed the pool|the pool is closed"):
        while True:  # repeats until a call has to wait, because replies may come early
            env.step(ACTIONS) if call == "step" else env.reset()


STOPPED_FOR_S = 2.5
"""A trainer is stopped for this time, longer than the limits of `CONFIGS` in `trainer.py`."""


@pytest.mark.usefixtures("swept")
@pytest.mark.parametrize("stage", ["resetting", "training"])
def test_ctrl_z_and_fg_is_no_fault(trainer, stage):
    """Ctrl-Z stops only the trainer and not its workers, which have a session of their own."""
    stopped = trainer("is stopped")
    stopped.wait_for_stage(stage)
    stopped.process.send_signal(signal.SIGSTOP)
    time.sleep(STOPPED_FOR_S)  # no event shows that this time is over
    stopped.process.send_signal(signal.SIGCONT)
    if stage == "resetting":
        stopped.wait_for_stage("training")
        stopped.wait_for_stage("playing")
    time.sleep(0.5)  # the watchdog makes two checks in this time
    stopped.process.send_signal(signal.SIGINT)
    said = stopped.wait_for_stage("interrupted")
    assert said["replacements"] == {}
    assert said["env_steps"] > 0


@pytest.mark.usefixtures("swept")
def test_full_disk_stops_no_trainer(trainer, installation):
    """A limit on the size of files acts like a full disk: no report and no log can be written."""
    talkative = installation("seq -f 'line %092.0f' 20")  # prints two thousand bytes
    unlucky = trainer("finds the disk full", game=talkative)
    said = unlucky.wait_for_stage("played on")
    assert [told["kind"] for told in said["told"]] == ["game-exited"] * 2
    assert [told["fault_report"] for told in said["told"]] == [None, None]
    assert said["replacements"] == {"game-exited": 2}
    assert said["env_steps"] == 16


@pytest.mark.usefixtures("swept")
def test_two_trainers_on_one_machine(trainer):
    """Two trainers that start at the same time must lease different ports, and both must play."""
    two = [trainer("trains") for _ in range(2)]
    ports = [one.wait_for_stage("training")["ports"] for one in two]
    assert len({*ports[0], *ports[1]}) == 4
    for one in two:
        children = one.children
        one.wait_for_stage("playing")
        one.process.send_signal(signal.SIGINT)
        said = one.wait_for_stage("interrupted")
        assert said["replacements"] == {}
        assert said["env_steps"] > 0
        assert_gone(children)


CALLS: dict[str, Callable[[SubprocSC2VecEnv], Any]] = {
    "step": lambda env: env.step(ACTIONS),
    "step_async": lambda env: env.step_async(ACTIONS),
    "step_wait": lambda env: env.step_wait(),
    "reset": lambda env: env.reset(),
    "get_attr": lambda env: env.get_attr("episode"),
    "pause": lambda env: env.pause(),
    "close": lambda env: env.close(),
}


def call_all(env: SubprocSC2VecEnv, answers: Any) -> None:
    warnings.simplefilter("error")
    for name, call in CALLS.items():
        try:
            call(env)
        except (ForkedPoolError, RuntimeWarning) as error:
            answers.put((name, str(error)))
        except BaseException as error:
            answers.put((name, repr(error)))
        else:
            answers.put((name, "nothing was raised"))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_is_refused_and_the_parent_gets_its_own_transition(begun):
    env = begun()
    expected = [env.step(ACTIONS)[0] for _ in range(3)]
    env.seed(7)
    env.reset()
    env.step_async(ACTIONS)
    forking = multiprocessing.get_context("fork")
    answers = forking.SimpleQueue()
    child = forking.Process(target=call_all, args=(env, answers))
    child.start()
    for name in CALLS:
        called, said = answers.get()
        assert called == name
        assert "this pool belongs to process" in said
    child.join()
    assert child.exitcode == 0
    assert np.array_equal(env.step_wait()[0], expected[0])
    assert np.array_equal(env.step(ACTIONS)[0], expected[1])


PROGRAM = Path(__file__).with_name("prints_on_terminal.py")


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a terminal that stops background processes if they print (`stty tostop`)."""
    ours, theirs = pty.openpty()
    attributes = termios.tcgetattr(theirs)
    attributes[3] |= termios.TOSTOP
    termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    yield ours, theirs
    os.close(ours)


def test_an_env_prints(terminal):
    ours, theirs = terminal
    program = subprocess.Popen(
        [sys.executable, PROGRAM],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    said = b""
    with suppress(OSError):  # the end of the terminal raises this error
        while part := os.read(ours, 1 << 16):
            said += part
    assert program.wait(30) == 0, said.decode()
    *_, faults = said.decode().splitlines()
    assert faults == "[]"
    assert said.count(b"a line of the env's") == 6


ROOT = Path(__file__).parents[3]
PLAYS_ONCE = """
import sys
import numpy as np
from sc2pool import SC2VectorEnv
from sc2pool.config import Limits, PoolConfig
from sc2pool.errors import ConfigError
try:
    env = SC2VectorEnv(
        n=2, task="MoveToBeacon", game=sys.argv[1], config=PoolConfig(limits=Limits(launch_s=5.0))
    )
except ConfigError as error:
    print("ConfigError:", error)
else:
    env.reset()
    env.step(np.zeros(2, np.int64))
    env.close()
    print("played")
"""


def can_unshare(what: str) -> bool:
    return os.geteuid() == 0 and run("unshare", what, "true").returncode == 0


needs_a_mount = pytest.mark.skipif(not can_unshare("-m"), reason="needs a mount of its own")
needs_a_network = pytest.mark.skipif(not can_unshare("-n"), reason="needs a network of its own")


def play(folder: Path, options: str, variable: str, game: object) -> str:
    """The output of a program whose `variable` is a folder mounted with these options."""
    folder.mkdir()
    mount = f'mount -t tmpfs -o {options},size=64m none "$0" && exec "$@"'
    environment = os.environ | {variable: str(folder), "PYTHONPATH": str(ROOT)}
    mounted = ("unshare", "-m", "sh", "-c", mount, folder)
    done = run(*mounted, sys.executable, "-c", PLAYS_ONCE, game, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@needs_a_mount
@pytest.mark.standin("the stand-in is installed in one of the folders")
@pytest.mark.parametrize(
    ("options", "variable"), [("noexec", "TMPDIR"), ("ro", "TMPDIR"), ("ro", "XDG_CACHE_HOME")]
)
def test_a_folder_that_a_pool_can_do_without(standin_dir, tmp_path, options, variable):
    """Like Python's own `tempfile`, the pool takes the next temporary folder that is writable.

    Fault reports do not need the cache folder.
    """
    assert play(tmp_path / "folder", options, variable, standin_dir) == "played"


@needs_a_mount
@pytest.mark.standin("the stand-in is installed in one of the folders")
@pytest.mark.parametrize(
    ("options", "words"),
    [("ro", ("cannot write the stand-in", "cache")), ("noexec", ("SC2_x64", "noexec"))],
)
def test_a_cache_that_no_pool_can_do_without_is_named(tmp_path, options, words):
    said = play(tmp_path / "cache", options, "XDG_CACHE_HOME", "auto")
    assert said.startswith("ConfigError: ")
    assert all(word in said for word in words)


@needs_a_network
@pytest.mark.standin("the game must start without a network")
def test_a_machine_without_a_network_to_itself_is_told(standin_dir):
    """The error must name the address if loopback is down, as in a new network namespace."""
    program = (sys.executable, "-c", PLAYS_ONCE, standin_dir)
    done = run("unshare", "-n", *program, env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert done.returncode == 1
    assert "CrashLoopError: " in done.stderr
    assert "Network is unreachable: 127.0.0.1" in done.stderr
