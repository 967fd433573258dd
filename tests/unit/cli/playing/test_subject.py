"""Which model is meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from gymnasium import spaces

from sc2pool.cli.playing.record import check_recordable, env_spec_of
from sc2pool.cli.playing.subject import Subject, find_subject, playable_model, scripted_player
from sc2pool.errors import ConfigError
from sc2pool.pretrained import pretrained
from sc2pool.tasks.registry import resolve


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


def test_a_space_without_arrays_is_not_recorded() -> None:
    built_in = resolve("MoveToBeacon")
    check_recordable(built_in)
    said = type("Said", (built_in,), {"observation_space": spaces.Text(5)})
    with pytest.raises(ConfigError, match=r"Said: observation_space Text\(1, 5, .* cannot be rec"):
        check_recordable(said)


def test_a_users_task_of_a_built_in_name_is_not_the_built_in_one() -> None:
    """The scripted player and gymnasium's spec are for the spaces of the built-in task."""
    built_in = resolve("MoveToBeacon")
    scripted_player(built_in)
    assert env_spec_of(Subject("random", built_in, "auto")) is not None
    own = type("MoveToBeacon", (built_in,), {})
    assert env_spec_of(Subject("random", own, "auto")) is None
    with pytest.raises(ConfigError, match="MoveToBeacon has no scripted player"):
        scripted_player(own)
