"""Which model is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from sc2pool.cli.playing.subject import find_subject, playable_model
from sc2pool.pretrained import pretrained


def test_a_folder_does_not_hide_a_pretrained_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder of several users, another user can have made it."""
    planted = tmp_path / "MoveToBeacon"
    planted.mkdir()
    (planted / "model.zip").write_text("what runs code when it is loaded")
    monkeypatch.chdir(tmp_path)
    bundled = str(pretrained()["MoveToBeacon"].path)
    assert find_subject("movetobeacon", None, None).name == bundled
    assert playable_model("./MoveToBeacon") == Path("MoveToBeacon/model.zip")
