"""An installation whose stopped games miss nothing, and pools of games in real time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sc2pool import SubprocSC2VecEnv
from sc2standin.install import install
from tests.support.pools import maker

sys.path.insert(0, str(Path(__file__).parent / "programs"))  # workers import from there, too
from realtime_tasks import TellsLoop

MakeEnv = Callable[..., SubprocSC2VecEnv]


@pytest.fixture(scope="session")
def freezing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation whose games continue where they were stopped."""
    folder: Path = tmp_path_factory.mktemp("freezing") / "StarCraftII"
    install(folder, ("--after-stop", "freeze"))
    return folder


@pytest.fixture
def make_env(freezing: Path) -> Iterator[MakeEnv]:
    """Makes pools in real time, and closes them."""
    with maker(SubprocSC2VecEnv, n=2, task=TellsLoop, game=freezing, realtime=True) as make:
        yield make


@pytest.fixture
def begun(make_env: MakeEnv) -> MakeEnv:
    """The same, with the first episodes begun."""

    def make(**options: Any) -> SubprocSC2VecEnv:
        env = make_env(**options)
        env.reset()
        return env

    return make
