"""Tests that steps become whole episodes that Minari can read, however the writer ended."""

from __future__ import annotations

import errno
import gc
import json
import os
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import gymnasium
import h5py
import minari
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from minari.data_collector import EpisodeBuffer
from minari.dataset.minari_storage import MinariStorage

import sc2pool  # noqa: F401 - it registers the tasks
from sc2pool import datasets
from sc2pool.datasets import EpisodeCollector, MinariWriter, RecordedEpisode
from sc2pool.errors import ConfigError
from sc2pool.replacing import new_file, new_folder


def info(last: Any, *, truncated: bool = False, fault: str | None = None) -> dict[str, Any]:
    """The info of an episode's last step."""
    more = {} if fault is None else {"sc2pool.fault": {"kind": fault}}
    return {"terminal_observation": last, "TimeLimit.truncated": truncated, **more}


def play(collector: EpisodeCollector, ends: list[dict[int, dict[str, Any]]]) -> None:
    """Play two rows: in step t, row r observes 10 t + r, takes action 100 t + r, and earns t."""
    seen = np.array([0, 1])
    collector.begin(seen)
    for t, ended in enumerate(ends, 1):
        actions, rewards = 100 * t + np.arange(2), np.full(2, t, np.float32)
        seen[:] = 10 * t + np.arange(2)  # the trainer may write into the arrays that it was given
        over = np.array([row in ended for row in range(2)])
        collector.step(actions, seen, rewards, over, [ended.get(row, {}) for row in range(2)])
        actions[:] = rewards[:] = -1


def test_rows_whose_episodes_have_different_lengths():
    episodes: list[RecordedEpisode] = []
    collector = EpisodeCollector(episodes.append)
    play(collector, [{}, {1: info(7)}, {0: info(8, truncated=True)}, {1: info(9)}])
    first, second, third = episodes
    assert first.observations.tolist() == [1, 11, 7]
    assert first.actions.tolist() == [101, 201]
    assert first.rewards.tolist() == [1, 2]
    assert (first.terminated, first.fault, first.steps) == (True, None, 2)
    assert second.observations.tolist() == [0, 10, 20, 8]
    assert not second.terminated
    assert third.observations.tolist() == [21, 31, 9]
    assert third.actions.tolist() == [301, 401]
    assert len(collector._steps) == 1, "only what row 0 has begun is kept"


def test_faults_are_left_out_unless_they_are_asked_for():
    for keeps, kinds in ((False, [None]), (True, ["hung", None])):
        episodes: list[RecordedEpisode] = []
        collector = EpisodeCollector(episodes.append, keeps_faulty=keeps)
        play(collector, [{0: info(5, truncated=True, fault="hung")}, {0: info(6)}])
        assert [episode.fault for episode in episodes] == kinds
        assert episodes[-1].observations.tolist() == [10, 6]


def test_a_reset_drops_what_was_begun():
    episodes: list[RecordedEpisode] = []
    collector = EpisodeCollector(episodes.append)
    play(collector, [{}])
    play(collector, [{0: info(7)}])
    assert episodes[0].observations.tolist() == [0, 7]


def test_observations_of_several_parts():
    episodes: list[RecordedEpisode] = []
    collector = EpisodeCollector(episodes.append)
    seen = {"a": np.zeros((1, 2)), "b": (np.zeros(1), np.zeros((1, 3, 3)))}
    last = {"a": np.ones(2), "b": (np.float64(1), np.ones((3, 3)))}
    collector.begin(seen)
    collector.step(np.zeros((1, 4)), seen, np.zeros(1), np.array([True]), [info(last)])
    (episode,) = episodes
    assert episode.observations["a"].tolist() == [[0, 0], [1, 1]]
    assert episode.observations["b"][0].tolist() == [0, 1]
    assert episode.observations["b"][1].shape == (2, 3, 3)
    assert episode.actions.shape == (1, 4)


ID = "sc2pool/Test/walk-v0"
IMAGE = spaces.Box(0, 255, (40, 40, 3), np.uint8)
PLACES = spaces.Dict({"image": IMAGE, "place": spaces.Box(-1, 1, (2,), np.float32)})
MOVES = spaces.Discrete(4)


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


def episode(number: int, steps: int = 3, **given: Any) -> RecordedEpisode:
    random = np.random.default_rng(number)
    seen = {
        "image": random.integers(0, 255, (steps + 1, *IMAGE.shape), np.uint8),
        "place": random.random((steps + 1, 2), np.float32),
    }
    values: dict[str, Any] = {"terminated": bool(number % 2), "fault": None, **given}
    return RecordedEpisode(
        seen, random.integers(0, 4, steps), np.full(steps, number, float), **values
    )


def writer(**given: Any) -> MinariWriter:
    return MinariWriter(ID, PLACES, MOVES, **given)


def write(made: MinariWriter, *numbers: int) -> None:
    for number in numbers:
        made.add(episode(number))
    made.flush()


def assert_has(numbers: list[int]) -> None:
    dataset = minari.load_dataset(ID)
    assert dataset.total_episodes == len(numbers)
    assert dataset.total_steps == 3 * len(numbers)
    found = list(dataset.iterate_episodes())
    for place, (read, number) in enumerate(zip(found, numbers, strict=True)):
        wrote = episode(number)
        assert read.id == place
        for name in PLACES.spaces:
            np.testing.assert_array_equal(read.observations[name], wrote.observations[name])
        np.testing.assert_array_equal(read.actions, wrote.actions)
        assert read.rewards.tolist() == [number] * 3
        assert read.terminations.tolist() == [False, False, bool(number % 2)]
        assert read.truncations.tolist() == [False, False, not number % 2]


def test_what_is_written_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "SHARD_STEPS", 6)
    made = writer(about={"algorithm_name": "PPO", "description": "a walk"})
    for number in range(5):
        made.add(episode(number))
    assert (made.episodes, made.steps) == (5, 15)
    assert_has([0, 1, 2, 3])
    made.flush()
    made.flush()
    assert_has([0, 1, 2, 3, 4])
    assert len(list(made.folder.glob("shard-*.hdf5"))) == 3
    assert len(minari.load_dataset(ID).sample_episodes(4)) == 4
    about = json.loads((made.folder / "metadata.json").read_text())
    assert (about["algorithm_name"], about["description"]) == ("PPO", "a walk")
    ids = [one["id"] for one in minari.load_dataset(ID).storage.get_episode_metadata(range(5))]
    assert ids == [0, 1, 2, 3, 4]
    assert ID in minari.list_local_datasets()


def test_it_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer is killed when a shard is written but not linked, and the next shard is begun."""
    first = writer()
    write(first, 0)
    with monkeypatch.context() as patch:
        patch.setattr(MinariWriter, "_link", lambda *_: None)
        write(first, 1)
    new_folder(first.folder)
    new_file(first.folder / "metadata.json")
    first.close()
    assert_has([0])
    second = writer(resume=True)
    assert (second.episodes, second.steps) == (2, 6)
    write(second, 2)
    assert_has([0, 1, 2])
    assert not list(first.folder.glob("unfinished-*"))


def test_a_shard_whose_links_were_refused_is_linked_with_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = writer()
    made.add(episode(0))
    with monkeypatch.context() as patch, pytest.raises(OSError, match="no space"):
        patch.setattr(datasets, "_number", Mock(side_effect=OSError("no space")))
        made.flush()
    assert_has([])
    write(made, 1)
    assert_has([0, 1])


@pytest.mark.parametrize("most_bytes", range(4_000, 84_000, 8_000))
def test_full_disk_at_any_write_is_an_os_error(
    limited: Callable[[str, int], AbstractContextManager[None]],
    capfd: pytest.CaptureFixture[str],
    most_bytes: int,
) -> None:
    made = writer()
    for number in range(3):
        made.add(episode(number))
    with limited("FSIZE", most_bytes), pytest.raises(OSError) as caught:
        made.flush()
    assert caught.value.errno == errno.EFBIG
    assert capfd.readouterr().err == ""
    made.flush()
    assert_has([0, 1, 2])


def recorded(*numbers: int) -> Path:
    """The folder of a dataset that has one episode in each shard."""
    made = writer()
    for number in numbers:
        write(made, number)
    made.close()
    return made.folder


def test_two_recorders_do_not_mix_their_episodes() -> None:
    first = writer()
    with pytest.raises(ConfigError, match="another recorder writes into this dataset, and has not"):
        writer(resume=True)
    write(first, 0)
    first.close()
    second = writer(resume=True)
    write(second, 1)
    assert_has([0, 1])
    del second, first
    gc.collect()
    assert [path.name for path in recorded_folder().parent.iterdir()] == ["data"]


def recorded_folder() -> Path:
    return datasets.folder_of(ID)


@pytest.mark.parametrize("content", [b"", b'{"total_epi', b"[]", b"{}", b"\xff", b"[" * 100_000])
def test_damaged_metadata_are_written_again(content: bytes, caplog) -> None:
    folder = recorded(0, 1)
    (folder / "metadata.json").write_bytes(content)
    with pytest.raises(ConfigError, match="already; resume it"):
        writer()
    second = writer(resume=True)
    assert "its metadata are damaged, and are written again" in caplog.text
    write(second, 2)
    assert_has([0, 1, 2])


@pytest.mark.parametrize("space", ["", "{", "[]", '{"type": "Nope"}', '{"type": "Discrete"}', 5])
def test_damaged_spaces_are_written_again(space: Any, caplog) -> None:
    folder = recorded(0)
    about = json.loads((folder / "metadata.json").read_text())
    (folder / "metadata.json").write_text(json.dumps({**about, "action_space": space}))
    write(writer(resume=True), 1)
    assert "its metadata are damaged, and are written again" in caplog.text
    assert_has([0, 1])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("name", ["main_data.hdf5", "shard-00000.hdf5"])
def test_a_pipe_in_place_of_a_file_is_refused(name: str) -> None:
    folder = recorded(0)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(ConfigError, match=f"{name} is not a regular file"):
        writer(resume=True)


def test_metadata_name_no_env_that_is_made() -> None:
    """No env is made, although Minari makes the env that a file names if the spaces are missing."""
    folder = recorded(0)
    spec = EnvSpec("Evil-v0", entry_point="tests.unit.datasets.imported_by_nobody:Evil").to_json()
    about = json.loads((folder / "metadata.json").read_text())
    del about["action_space"]
    (folder / "metadata.json").write_text(json.dumps({**about, "env_spec": spec}))
    writer(resume=True)
    assert_has([0])


def cut_short(shard: Path) -> None:
    shard.write_bytes(shard.read_bytes()[:-100])


def give_no_number_of_steps(shard: Path) -> None:
    with h5py.File(shard, "a") as file:
        (episode,) = file.values()
        episode.attrs["total_steps"] = [1, 2]


@pytest.mark.parametrize("damage", [cut_short, give_no_number_of_steps])
def test_a_damaged_shard_is_set_aside(damage: Callable[[Path], None], caplog) -> None:
    folder = recorded(0, 1, 2)
    damage(folder / "shard-00001.hdf5")
    second = writer(resume=True)
    assert "damaged-shard-00001.hdf5" in caplog.text
    assert_has([0, 2])
    write(second, 3)
    assert_has([0, 2, 3])
    ids = [one["id"] for one in minari.load_dataset(ID).storage.get_episode_metadata(range(3))]
    assert ids == [0, 1, 2]
    assert (folder / "shard-00003.hdf5").exists(), "no number is used twice"


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("left", [(), ("metadata.json",), ("metadata.json", "main_data.hdf5")])
@pytest.mark.parametrize("content", [b"", b"{"])
def test_a_dataset_of_a_recorder_that_was_killed_at_its_beginning(resume, left, content) -> None:
    folder = recorded_folder()
    folder.mkdir(parents=True)
    for name in left:
        (folder / name).write_bytes(content)
    write(writer(resume=resume), 0)
    assert_has([0])


def test_a_dataset_of_another_program_is_left_alone() -> None:
    folder = recorded_folder()
    folder.mkdir(parents=True)
    storage = MinariStorage.new(folder, observation_space=PLACES, action_space=MOVES)
    one = episode(0)
    flags = np.zeros(one.steps, bool)
    storage.update_episodes(
        [
            EpisodeBuffer(
                observations=one.observations,
                actions=one.actions,
                rewards=one.rewards,
                terminations=flags,
                truncations=flags,
            )
        ]
    )
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for resume, why in ((False, "already; resume it?"), (True, "was not recorded by sc2pool")):
        with pytest.raises(ConfigError, match=re.escape(why)):
            writer(resume=resume)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_fault_is_marked() -> None:
    made = writer()
    made.add(episode(0))
    made.add(episode(2, fault="hung"))
    made.flush()
    whole, faulty = minari.load_dataset(ID).storage.get_episode_metadata([0, 1])
    assert "fault" not in whole
    assert faulty["fault"] == "hung"
    kept = minari.load_dataset(ID).filter_episodes(lambda one: one.rewards[0] == 0)
    assert kept.total_episodes == 1


def test_minari_makes_the_env_again(standin_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SC2PATH", str(standin_dir))
    spec = gymnasium.spec("sc2pool/MoveToBeacon-v0")
    writer(env_spec=spec)
    env = minari.load_dataset(ID).recover_environment()
    assert str(env.unwrapped) == "<SC2GymEnv<sc2pool/MoveToBeacon-v0>>"
    env.close()


@pytest.mark.parametrize("wrong", ["", "no version", "sc2pool/Task", "sc2pool/Task/a v0", 5])
def test_no_id(wrong: Any) -> None:
    with pytest.raises(ConfigError, match=f"{wrong!r}: expected an id such as sc2pool/Task"):
        MinariWriter(wrong, PLACES, MOVES)


def test_one_that_is_there() -> None:
    recorded(0)
    with pytest.raises(ConfigError, match=f"dataset {ID}: it is in .* already; resume it?"):
        writer()
    with pytest.raises(ConfigError, match=r"its action_space is Discrete\(4\), not Discrete\(5\)"):
        MinariWriter(ID, PLACES, spaces.Discrete(5), resume=True)
