"""Fixtures of all tests: a game to play, a bounded wait, and the check that nothing is left over.

    `pytest`: Every test runs; its games are the stand-in.
    `pytest --tier=fast`: The tests of a tier run (see tiers.py), with progress and summary.
    `pytest --game=real`: The contract's tests (CONTRACT) play the installation in SC2PATH.
    `pytest --game=PATH`: The contract's tests play the installation at PATH.
    `pytest -m "not timing"`: For a busy machine: no test has upper bounds on measured time.

A test that any game should pass plays `game_installation`. A test that expects the stand-in's
behaviour plays `standin_dir`, or is marked `standin(reason)` and skipped with `--game`.

The temporary files of a run, of its workers and of its games are in one folder, so that tests
can tell their own processes and files from those of other programs.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

# With more threads, torch would busy-wait beside other tests' games, here and in child processes.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A node may answer late on a busy machine, so Ray waits a minute for the answer to a health check.
os.environ.setdefault("RAY_health_check_timeout_ms", "60000")
# By default Ray's processes have a low priority, and would wait for processes of other tests.
os.environ.setdefault("RAY_worker_niceness", "0")
sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))  # worker processes inherit this path
from sc2pool.errors import ConfigError
from sc2pool.game.program.installation import Installation, find_installation
from sc2pool.platform import WINDOWS
from tests.reporting import Meter, Reporter
from tests.support.audit.belongings import Belongings
from tests.tiers import FOLDERS, LONGER, GivesWay, gives_way, is_long

if WINDOWS:  # the default event loop of Windows has no `add_reader`
    asyncio.set_event_loop_policy(asyncio.WindowsSelectorEventLoopPolicy())
WaitFor = Callable[..., None]
CONTRACT = ("unit/protocol", "game", "tasks", "standin/assertions")
"""The folders of tests that run with `--game` if no other folders are named."""
CHOSEN = pytest.StashKey[Installation]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--game",
        metavar="real|PATH",
        help="run the tests of the contract with the game on this installation, not the stand-in",
    )
    parser.addoption("--tier", choices=FOLDERS, help="run the tests of these folders, see tiers.py")


def pytest_configure(config: pytest.Config) -> None:
    # Background jobs of a shell, and their children, ignore SIGINT.
    # Some tests send SIGINT to programs that they have started, so SIGINT is enabled again.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    game, tier = config.getoption("--game"), config.getoption("--tier")
    if game is not None:
        try:
            config.stash[CHOSEN] = find_installation(game)
        except ConfigError as error:
            raise pytest.UsageError(f"--game={game}: {error}") from error
    if config.args_source is pytest.Config.ArgsSource.ARGS or not (game or tier):
        return
    folders = CONTRACT if game is not None else FOLDERS[tier]
    config.args = [str(Path(__file__).parent / folder) for folder in folders]
    if tier == "long":
        os.environ[LONGER] = "1"
    config.pluginmanager.register(Meter())
    if hasattr(config, "workerinput"):
        if gives_way(config.workerinput["workerid"]):
            config.pluginmanager.register(GivesWay())
    else:
        config.pluginmanager.register(Reporter(config, config.getoption("lf", False)))


def pytest_report_header(config: pytest.Config) -> str | None:
    chosen = config.stash.get(CHOSEN, None)
    return f"game: Base{chosen.base_build} at {chosen.root}" if chosen else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if CHOSEN not in config.stash:
        return
    for item in items:
        mark = item.get_closest_marker("standin")
        if mark is not None:
            item.add_marker(pytest.mark.skip(reason=f"the stand-in only: {mark.args[0]}"))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """If a test is a coroutine, run it in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


def pytest_collection_finish() -> None:
    # Imported objects are never freed; a garbage collection that skips them takes 0.3 s less.
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def run_temp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Sets the temp folder and cache folder of the run, for this process and all its children."""
    folder: Path = tmp_path_factory.mktemp("run-temp")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(tempfile, "tempdir", str(folder))
        # Fault reports stay after a test, so the cache folder cannot be in the temp folder.
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield folder


@pytest.fixture
def limited() -> Callable[[str, int], AbstractContextManager[None]]:
    """`with limited("NOFILE", 0):` lowers this process's limit on a resource, see setrlimit(2)."""
    resource = pytest.importorskip("resource", reason="Windows has no such limits")

    @contextmanager
    def limit(name: str, most: int) -> Iterator[None]:
        which = getattr(resource, f"RLIMIT_{name}")
        soft, hard = resource.getrlimit(which)
        resource.setrlimit(which, (most, hard))
        try:
            yield
        finally:
            resource.setrlimit(which, (soft, hard))

    return limit


@pytest.fixture(scope="session")
def standin_dir(tempered: Callable[[str], Path]) -> Path:
    """An installation of the stand-in with the recorded tempers of the real game; see `TEMPERS`.

    In the long tier the stand-in has all tempers, even those known only from clients' workarounds.
    """
    return tempered("all" if is_long() else "recorded")


@pytest.fixture(scope="session")
def tempered(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`tempered("stub-end")`: an installation of the stand-in with the named tempers."""

    @cache
    def installed(tempers: str) -> Path:
        folder: Path = tmp_path_factory.mktemp("tempered") / "StarCraftII"
        command = [sys.executable, "-m", "sc2standin", "install", str(folder), "--temper", tempers]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=300)
        return folder

    return installed


@pytest.fixture(scope="session")
def game_installation(request: pytest.FixtureRequest, standin_dir: Path) -> Installation:
    """The game to play: the installation that `--game` names, or the stand-in without `--game`."""
    return request.config.stash.get(CHOSEN, None) or find_installation(standin_dir)


@pytest.fixture(scope="session")
def python_with() -> Callable[[str], str]:
    """`python_with("ray")`: the interpreter that has this library; without one, skips the test."""

    def find_interpreter(library: str) -> str:
        if find_spec(library) is not None:
            return sys.executable
        environment = ".venv/ray" if library == "ray" else ".venv/libraries"
        beside = Path(__file__).parents[1] / environment / "bin" / "python"
        if not beside.exists():
            pytest.skip(f"no {library}: ./scripts/test --all installs it, in {environment}")
        return str(beside)

    return find_interpreter


@pytest.fixture(scope="session")
def python_with_ray(python_with: Callable[[str], str]) -> str:
    """The interpreter that has RLlib; skips the test without one."""
    return python_with("ray")


@pytest.fixture(scope="session")
def recorded_dir() -> Path:
    """The folder of messages recorded from real games; skips the test without one."""
    beside = Path(__file__).parents[2] / "shared" / "recorded"
    folder = Path(os.environ.get("SC2POOL_RECORDED", beside))
    if not folder.is_dir():
        pytest.skip(f"no recorded messages at {folder}")
    return folder


@pytest.fixture(scope="session")
def wait_for() -> WaitFor:
    """`wait_for(condition, timeout_s)`: waits until `condition()` is true, or fails the test."""

    def wait(condition: Callable[[], object], timeout_s: float = 60.0) -> None:
        deadline_s = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline_s, f"not within {timeout_s} s: {condition}"
            time.sleep(0.005)

    return wait


@pytest.fixture
def begun(make_env: Callable[..., Any]) -> Callable[..., Any]:
    """Makes pools with the `make_env` of the test's folder, and begins their first episodes."""

    def make(**options: Any) -> Any:
        env = make_env(**options)
        env.reset()
        return env

    return make


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest, run_temp: Path) -> Iterator[None]:
    """Fails a test that leaves a process, a descriptor, a port, shared memory or a temp folder."""
    before = Belongings(run_temp)
    failed_before = request.session.testsfailed
    yield
    left = before.what_stays()
    before.end_new_processes()
    if left and request.session.testsfailed == failed_before:
        pytest.fail("left behind: " + "; ".join(left), pytrace=False)
