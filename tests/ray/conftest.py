"""Fixtures for programs on a Ray cluster of this machine, and for two versions of the game."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from sc2standin.install import install
from tests.support.on_ray import Report, report_of
from tests.tiers import LONGER, is_long

only_long = pytest.mark.skipif(not is_long(), reason=f"of the long form, which {LONGER}=1 runs")


@pytest.fixture(scope="session")
def other_version(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation of the stand-in that reports another version."""
    folder: Path = tmp_path_factory.mktemp("other") / "StarCraftII"
    executable = install(folder)
    program = (
        "import sys, sc2standin.version as version; version.GAME_VERSION = 'standin-other'; "
        "from sc2standin.command import main; sys.exit(main(sys.argv[1:]))"
    )
    script = executable.read_text().replace("-m sc2standin", f'-c "{program}"')
    executable.write_text(script)
    return folder


@pytest.fixture(scope="session")
def run_on_ray(python_with_ray: str) -> Callable[..., Report]:
    """A function that runs a program on Ray and returns its report; see `report_of`."""
    return partial(report_of, python_with_ray)
