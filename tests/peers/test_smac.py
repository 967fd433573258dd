"""SMAC as it is published plays the stand-in; `tests/peers/run_smac.py play` plays more of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.peers.run_smac import ENVIRONMENT, installation, play

SMAC = Path(os.environ.get("SC2POOL_SMAC", ENVIRONMENT))


@pytest.mark.skipif(
    not (SMAC / "prepared").exists(),
    reason=f"no SMAC in {SMAC}: `tests/peers/run_smac.py play` makes the environment",
)
@pytest.mark.parametrize("player", ["random", "heuristic"])
def test_smac_plays_as_it_is_published(player):
    """The long form is `tests/peers/run_smac.py play`."""
    with installation() as game:
        played = play(SMAC / "bin" / "python", game, "3m", player, episodes=3, seed=1)
    assert played.forced_restarts == 0
    assert len(played.returns) == 3
    assert all(0 <= one <= 20.001 for one in played.returns)
