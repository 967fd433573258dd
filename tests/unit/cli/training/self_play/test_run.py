"""The folder of a run with self-play."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import create_autospec

import pytest
from stable_baselines3 import PPO

from sc2pool.cli.training.self_play.run import SelfPlay
from sc2pool.errors import ConfigError
from tests.unit.cli.training.conftest import options


@pytest.mark.parametrize("shared", [".", "snapshots"])
def test_snapshots_are_not_loaded_from_a_folder_of_all_users(tmp_path: Path, shared: str) -> None:
    """To load one that another user has put there may run code of that user's."""
    (tmp_path / "snapshots").mkdir()
    (tmp_path / shared).chmod(0o1777)
    run = options(tmp_path, task="MarineDuel", self_play="uniform", snapshot_every=100)
    with pytest.raises(ConfigError, match="snapshots are loaded from it, but every user may write"):
        SelfPlay(run, create_autospec(PPO, instance=True))
