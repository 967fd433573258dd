"""Fixtures for tests of faults: pools and games that suffer harm."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sc2pool import SubprocSC2VecEnv
from sc2pool.platform import WINDOWS

sys.path.insert(0, str(Path(__file__).parent))  # workers also import the tasks from this folder
from fault_pools import SEED, MakeEnv, Recording, record
from fault_tasks import STRIKE_FILE, Saboteur

from tests.support.audit.faulty import Faulty
from tests.support.installations import changed
from tests.support.pools import maker

STRIKE_SCRIPT = """
if [ -e "{armed}" ] && mkdir "{armed}.taken" 2>/dev/null; then
    read -r target name <"{armed}"
    if [ "$target" = game ]; then kill -"$name" $$; else kill -"$name" $PPID; fi
fi
"""


@pytest.fixture
def make_env(standin_dir: Path) -> Iterator[MakeEnv]:
    """Makes pools on the stand-in, and closes them."""
    with maker(SubprocSC2VecEnv, n=2, task=Saboteur, game=standin_dir, seed=SEED) as make:
        yield make


@pytest.fixture(scope="session")
def undisturbed(standin_dir: Path) -> Recording:
    """Ten steps of three unharmed envs with SEED; env i plays episode i for any number of envs."""
    with closing(SubprocSC2VecEnv(n=3, task=Saboteur, game=standin_dir, seed=SEED)) as env:
        return record(env, steps=10)


@pytest.fixture
def strike_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which a test orders a harm (a "strike") by a task or by a game's start script."""
    path = tmp_path / "strike"
    monkeypatch.setenv(STRIKE_FILE, str(path))
    return path


@pytest.fixture
def arm(strike_file: Path) -> Callable[[str], None]:
    """`arm("game KILL")` orders a strike; the pool's first process that finds the order obeys."""

    def write(harm: str) -> None:
        whole = strike_file.with_suffix(".new")
        whole.write_text(f"{harm}\n")
        whole.rename(strike_file)

    return write


@pytest.fixture
def installation(standin_dir: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Makes an installation of the stand-in whose start runs a shell script first."""

    if WINDOWS:
        pytest.skip("its start script is no shell's")

    return lambda script: changed(
        standin_dir,
        tmp_path / "installation",
        lambda launcher: launcher.replace("#!/bin/sh\n", f"#!/bin/sh\n{script}\n"),
    )


@pytest.fixture(scope="module")
def faulty_games(standin_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Faulty:
    """An installation whose games do harm when a test orders it."""
    return Faulty.install(standin_dir, tmp_path_factory.mktemp("faulty"))


@pytest.fixture
def faulty(faulty_games: Faulty) -> Iterator[Faulty]:
    """The installation of `faulty_games`; at the end an order that nobody obeyed is cancelled."""
    yield faulty_games
    faulty_games.orders.unlink(missing_ok=True)


@pytest.fixture
def striking_installation(installation: Callable[[str], Path], strike_file: Path) -> Path:
    """An installation whose games, while they start, carry out a strike that `arm` has ordered."""
    return installation(STRIKE_SCRIPT.format(armed=strike_file))
