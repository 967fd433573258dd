"""SMACv2 as it is published says the same numbers as our task, on the stand-in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.peers.compare_smacv2 import ENVIRONMENT, compare
from tests.peers.run_smac import installation

SMACV2 = Path(os.environ.get("SC2POOL_SMACV2", ENVIRONMENT))


@pytest.mark.skipif(
    not (SMACV2 / "prepared").exists(),
    reason=f"no SMACv2 in {SMACV2}: `tests/peers/compare_smacv2.py` makes the environment",
)
@pytest.mark.parametrize("scenario", ["terran_5_vs_5", "protoss_5_vs_5", "zerg_5_vs_5"])
def test_smacv2_says_the_same_numbers(scenario):
    """The long form is `tests/peers/compare_smacv2.py --options`."""
    with installation() as game:
        found = compare(SMACV2 / "bin" / "python", game, scenario, {}, steps=20, seed=1)
    assert not found.different
    assert found.steps >= 20
