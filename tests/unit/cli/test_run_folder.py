"""Tests the folder of a run, and the saved models from which a run can be resumed."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import sys
import zipfile
from pathlib import Path
from unittest.mock import Mock

import pytest
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.envs import IdentityEnv
from stable_baselines3.common.vec_env import DummyVecEnv

from sc2pool.cli.training.run_folder import describe, find_model, open_folder, read_steps, reserved
from sc2pool.errors import ConfigError
from sc2pool.processes import filelock
from sc2pool.replacing import new_file
from tests.support.programs import talking
from tests.unit.conftest import rewrite_archive


def saved(algorithm: type[BaseAlgorithm], folder: Path) -> Path:
    path = folder / "model.zip"
    model = algorithm("MlpPolicy", DummyVecEnv([IdentityEnv]), device="cpu")
    model.num_timesteps = 77
    model.save(path)
    return path


@pytest.mark.parametrize(
    ("algorithm", "algo"),
    [(PPO, "ppo"), (A2C, "a2c"), (DQN, "dqn"), (PPO, "async-ppo"), (DQN, "async-dqn")],
)
def test_its_own_algorithm(tmp_path, algorithm, algo):
    assert read_steps(saved(algorithm, tmp_path), algo) == 77


def test_run_killed_before_its_first_save_resumes_from_its_best_model(tmp_path):
    best = saved(PPO, tmp_path).rename(tmp_path / "best_model.zip")
    assert find_model(tmp_path) == best
    assert find_model(saved(PPO, tmp_path).parent) == tmp_path / "model.zip"


@pytest.mark.parametrize(
    ("algorithm", "algo", "told"),
    [
        (A2C, "ppo", r"PPO saved by training \(it lacks .*clip_r"),
        (DQN, "ppo", r"PPO saved by training \(it lacks .*clip_r"),
        (PPO, "a2c", r"A2C saved by training \(it has n_epochs"),
    ],
)
def test_another_algorithm(tmp_path, algorithm, algo, told):
    with pytest.raises(ConfigError, match=f"not a model of {told}"):
        read_steps(saved(algorithm, tmp_path), algo)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda _: ["a", "list"], "its data is a list, expected a dict"),
        (lambda data: {"num_timesteps": data["num_timesteps"]}, "it lacks observation_space, "),
        (lambda data: data | {"num_timesteps": None}, "num_timesteps is None, expected a whole"),
        (lambda data: data | {"num_timesteps": -5}, "num_timesteps is -5, expected a whole"),
        (
            lambda data: data | {"policy_class": {"__module__": "sb3_contrib.x"}},
            "of 'sb3_contrib.x'",
        ),
    ],
)
def test_odd_data(tmp_path, change, why):
    model = saved(PPO, tmp_path)
    with zipfile.ZipFile(model) as archive:
        data = json.loads(archive.read("data"))
    rewrite_archive(model, {"data": json.dumps(change(data))})
    with pytest.raises(ConfigError, match=why) as caught:
        read_steps(model, "ppo")
    assert "\n" not in str(caught.value)


def test_a_part_that_is_missing(tmp_path):
    model = saved(PPO, tmp_path)
    rewrite_archive(model, {"policy.pth": None})
    with pytest.raises(ConfigError, match=r"it lacks policy\.pth"):
        read_steps(model, "ppo")


def test_no_archive(tmp_path):
    path = tmp_path / "model.zip"
    path.write_text("nothing of the kind")
    with pytest.raises(ConfigError, match="not a model saved by training"):
        read_steps(path, "ppo")
    with pytest.raises(ConfigError, match="not a model saved by training"):
        read_steps(tmp_path, "ppo")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "is not a run's description: Expecting property name"),
        ('{"options": {}, "hyperparameters": ' + "[" * 100_000, "is not a run's description: "),
        ("[1]", "is not a run's description: it has no options"),
        ("{}", "is not a run's description: it has no options"),
        ('{"options": []}', "is not a run's description: it has no options"),
        ('{"options": {"task": 5}}', "task must be of type str, got 5"),
        ('{"options": {"game": null}}', "game must be of type str, got None"),
    ],
)
def test_a_description_by_hand(tmp_path, content, why):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ConfigError, match=re.escape(why)) as caught:
        describe(tmp_path)
    assert str(tmp_path / "config.json") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_description_that_is_a_folder(tmp_path):
    (tmp_path / "config.json").mkdir()
    with pytest.raises(ConfigError, match=r"config\.json cannot be read: "):
        describe(tmp_path)


def described(folder: Path) -> Path:
    """The path of a model; the description of its run names a task, a game and a number of envs."""
    (folder / "model.zip").touch()
    options = {"task": "mine:Walk", "game": "/opt/game", "n": 3}
    (folder / "config.json").write_text(json.dumps({"options": options}))
    return folder / "model.zip"


def test_a_run_that_is_named_says_its_task_and_its_game(tmp_path, capsys):
    described(tmp_path)
    run = describe(tmp_path)
    assert (run.options["task"], run.why_no_task) == ("mine:Walk", "")
    assert run.say_game() == "/opt/game"
    assert capsys.readouterr().out == "plays the game at /opt/game, as its config.json says\n"


@pytest.mark.parametrize("what", [".", "config.json"])
def test_a_description_that_another_user_can_have_written(tmp_path, what):
    """A run's description is not used if all users may write to it or to its (sticky) folder."""
    model = described(tmp_path)
    (tmp_path / what).chmod(0o1777)
    for given in (tmp_path, model):
        run = describe(given)
        assert (run.content, run.options) == ({}, {})
        assert run.why_no_task == (
            f"{tmp_path}/config.json is not used, because every user may write there"
        )


def test_records_that_another_user_can_have_written_are_not_copied(tmp_path):
    """The records include snapshots, and loading another user's snapshot may run code."""
    for mode, kept in ((0o777, False), (0o700, True)):
        earlier, out = tmp_path / f"earlier-{kept}", tmp_path / f"out-{kept}"
        (earlier / "snapshots").mkdir(parents=True)
        (earlier / "snapshots" / "step-0.zip").touch()
        (earlier / "episodes.csv").touch()
        earlier.chmod(mode)
        open_folder(out, described(earlier), {})
        assert (out / "snapshots" / "step-0.zip").exists() == kept
        assert (out / "episodes.csv").exists() == kept


def test_a_full_disk_is_said_and_leaves_the_description(tmp_path, full_disk):
    open_folder(tmp_path, None, {"options": {"n": 1}})
    with full_disk(), pytest.raises(ConfigError, match=f"^--out {tmp_path}: cannot be written to"):
        open_folder(tmp_path, tmp_path / "model.zip", {"options": {"n": 2}})
    assert describe(tmp_path).content == {"options": {"n": 1}}
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


def test_the_unfinished_video_of_a_killed_training_goes(tmp_path):
    videos = tmp_path / "videos"
    videos.mkdir()
    (videos / "step-100.mp4").touch()
    new_file(videos / "step-200.mp4")
    open_folder(tmp_path, tmp_path / "model.zip", {"options": {}})
    assert [path.name for path in videos.iterdir()] == ["step-100.mp4"]


def test_a_folder_in_which_another_training_has_begun_meanwhile(tmp_path):
    open_folder(tmp_path / "out", None, {"options": {"n": 0}})
    open_folder(
        tmp_path / "out", None, {"options": {"n": 1}}
    )  # the first run has not saved anything
    (tmp_path / "out" / "model.zip").touch()
    for resume in (None, tmp_path / "other" / "model.zip"):
        with pytest.raises(ConfigError, match="another training has just begun in it"):
            open_folder(tmp_path / "out", resume, {"options": {"n": 2}})
    assert describe(tmp_path / "out").content == {"options": {"n": 1}}


def test_a_folder_that_may_not_be_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder without write access is refused, although `tempfile` retries for ever on Windows."""

    def refuse(_: Path, __: bytes) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    with (
        pytest.raises(ConfigError, match=r"cannot be written to \(Permission denied\)"),
        reserved(tmp_path),
    ):
        pass


TRAINING = """
import sys
from pathlib import Path
from sc2pool.cli.training.run_folder import reserved

with reserved(Path(sys.argv[1])):
    print("reserved", flush=True)
    sys.stdin.read()
"""


def test_a_folder_of_a_training_that_has_not_ended(tmp_path):
    with talking(sys.executable, "-c", TRAINING, tmp_path) as training:
        assert training.stdout.readline() == "reserved\n"
        with pytest.raises(ConfigError, match="another training writes into"), reserved(tmp_path):
            pass
    with reserved(tmp_path):
        pass
    assert not tmp_path.exists()


def test_users_who_share_a_folder_share_its_lock(tmp_path, monkeypatch):
    before = os.umask(0o002)
    try:
        with reserved(tmp_path):
            assert stat.S_IMODE((tmp_path / "training.lock").stat().st_mode) == 0o664
    finally:
        os.umask(before)
    refused = PermissionError(
        errno.EACCES, "Permission denied"
    )  # the refusal is simulated, because root can open any file
    monkeypatch.setattr(filelock, "try_lock", Mock(side_effect=refused))
    told = r"/training\.lock may not be opened \(Permission denied\): it is another user's"
    with pytest.raises(ConfigError, match=told), reserved(tmp_path):
        pass


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def refuse(_: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(filelock, "_take", refuse)
    with reserved(tmp_path), reserved(tmp_path):
        assert list(tmp_path.iterdir()) == []
    assert not tmp_path.exists()
