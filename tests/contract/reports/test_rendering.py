"""Clause 8 of the contract: frames of every env class, videos by SB3 and gymnasium, and replays.

A frame shows the env's game at its newest observation. A video shows the same frames when it is
decoded. A replay is on disk when the transition that names it arrives.
"""

from __future__ import annotations

import os
import re
import signal
import urllib.request
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import imageio_ffmpeg
import mpyq
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import RecordVideo
from gymnasium.wrappers.vector import RecordVideo as RecordVectorVideo
from s2clientprotocol import sc2api_pb2 as sc_pb
from stable_baselines3.common.vec_env import VecVideoRecorder

from sc2pool.config import PoolConfig, ReplayPolicy
from sc2pool.errors import UserCodeError
from sc2pool.players.replays import REPLAY
from sc2pool.render import FRAME_SHAPE, MAP_PX, palette
from tests.contract.conftest import without_workers
from tests.contract.envs import Counting, Drawing
from tests.contract.tasks import Failing, Paid, PaidBot, Painting, Placed, PlacedBot
from tests.support.pools import begun

OWN = palette.SIDES[1]
TOLERANCE = 0.3
"""The allowed error in cells. A unit's nose also has the player's colour, and shifts the centre."""


def place_of_the_marine(frame: Any, game_info: Any) -> Any:
    """The place on the map at which the pixels of the player's own colour are centred."""
    rows, columns = np.nonzero((frame[:, :MAP_PX] == OWN).all(axis=2))
    assert rows.size > 20, "no marine was drawn"
    low, high = game_info.start_raw.playable_area.p0, game_info.start_raw.playable_area.p1
    cell_px = MAP_PX / (max(high.x - low.x, high.y - low.y) + 1)
    x = (low.x + high.x) / 2 + (columns.mean() + 0.5 - MAP_PX / 2) / cell_px
    y = (low.y + high.y) / 2 - (rows.mean() + 0.5 - MAP_PX / 2) / cell_px
    return np.array([x, y])


@pytest.mark.parametrize(
    ("task", "spares"), [(Placed, 0), (Placed, 2), (PlacedBot, 0)], ids=["task", "spares", "bot"]
)
def test_frames_show_the_observed_moment(vec_task, task, spares):
    """Each frame shows the newest observation, even an episode's first one after an autoreset or
    from a spare."""
    made = vec_task(task, n=2, spares=spares, seed=3, render_mode="rgb_array")
    observations = made.reset()
    ((game_info, _),) = made.env_method("_seen", indices=0)
    starts = [observations]
    for _ in range(8):
        frames = made.get_images()
        assert [frame.shape for frame in frames] == [FRAME_SHAPE] * 2
        assert [frame.dtype for frame in frames] == [np.uint8] * 2
        for frame, observed in zip(frames, observations, strict=True):
            seen = place_of_the_marine(frame, game_info)
            np.testing.assert_allclose(seen, observed, atol=TOLERANCE)
        observations, _, dones, _ = made.step([0, 4])
        if dones.any():
            starts.append(observations)
    places = np.concatenate(starts)
    assert len(places) == 6
    assert len(np.unique(places.round(), axis=0)) > 3, "episodes begin at different places"


@without_workers
def test_the_metadata_tell_the_speed_of_real_time(vec_task):
    made = vec_task(Placed, n=1, render_mode="rgb_array")
    told = {"render_modes": ["human", "rgb_array"], "render_fps": pytest.approx(22.4 / 8)}
    with pytest.raises(ResetNeeded, match="reset"):
        made.render()
    for _ in range(2):
        assert made.metadata["render_fps"] == told["render_fps"]
        assert "rgb_array" in made.metadata["render_modes"]
        assert made.get_attr("metadata") == [told]
        assert made.get_attr("render_mode") == ["rgb_array"]
        made.reset()  # the second pass repeats the checks after this reset


@without_workers
def test_a_task_may_draw_its_own_frames(vec_task):
    made = vec_task(Painting, n=2, render_mode="rgb_array")
    assert made.metadata["render_fps"] == 7
    made.reset()
    assert [frame[0, 0, 0] for frame in made.get_images()] == [0, 10]
    made.step([0, 0])
    assert [frame.shape for frame in made.get_images()] == [(4, 6, 3)] * 2
    assert [frame[0, 0, 0] for frame in made.get_images()] == [8, 18]


@without_workers
def test_gymnasium_env(gym_env):
    env = gym_env(Placed, render_mode="rgb_array")
    assert env.render_mode == "rgb_array"
    assert env.metadata["render_fps"] == pytest.approx(22.4 / 8)
    with pytest.raises(ResetNeeded):
        env.render()
    env.reset(seed=1)
    before = env.render()
    assert before.shape == FRAME_SHAPE
    truncated = False
    while not truncated:
        _, _, _, truncated, _ = env.step(4)
    last = env.render()
    assert (last != before).any(), "the episode's last state is still to be seen"
    env.reset(seed=1)
    again = env.render()
    # The frames differ only in the panel, which shows the number of the episode.
    np.testing.assert_array_equal(again[:, :MAP_PX], before[:, :MAP_PX])


@without_workers
def test_gymnasium_env_without_a_render_mode_warns(gym_env):
    env = begun(gym_env())
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None


def test_a_game_that_died_between_two_steps_shows_its_last_frame(vec_task):
    made = begun(vec_task(Placed, n=2, render_mode="rgb_array"))
    made.step([0, 0])
    before = made.get_images()
    os.kill(made.stats().instances[0].pid, signal.SIGKILL)
    while made.stats().replacements == {}:
        after = made.get_images()
        assert [frame.shape for frame in after] == [FRAME_SHAPE] * 2
        np.testing.assert_array_equal(after[0], before[0])
    _, _, dones, infos = made.step([0, 0])
    assert dones[0]
    assert infos[0]["sc2pool.synthetic"]
    assert (made.get_images()[0] != before[0]).any(), "the next episode"


def test_a_game_that_died_before_it_was_drawn_is_black(vec_task):
    made = begun(vec_task(Placed, n=1, render_mode="rgb_array"))
    os.kill(made.stats().instances[0].pid, signal.SIGKILL)
    deaths = 0
    while not deaths:
        (frame,) = made.get_images()
        deaths = sum(made.stats().replacements.values())
        made.pool._calls._frames.clear()
    (frame,) = made.get_images()
    assert frame.shape == FRAME_SHAPE
    assert not frame.any()


@without_workers
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_gymnasium_vector_env(vector_task, mode):
    made = vector_task(Placed, render_mode="rgb_array", autoreset_mode=mode)
    assert made.render_mode == "rgb_array"
    assert made.metadata["render_fps"] == pytest.approx(2.8)
    with pytest.raises(ResetNeeded):
        made.render()
    observations, _ = made.reset(seed=4)
    ((game_info, _), _) = made.call("_seen")
    for _ in range(6):
        for frame, observed in zip(made.render(), observations, strict=True):
            assert frame.shape == FRAME_SHAPE
            seen = place_of_the_marine(frame, game_info)
            np.testing.assert_allclose(seen, observed, atol=TOLERANCE)
        observations, _, _, truncated, _ = made.step(np.array([0, 4]))
        if mode is AutoresetMode.DISABLED and truncated.all():
            observations, _ = made.reset(options={"reset_mask": truncated})


@pytest.mark.parametrize(
    ("fixture", "task"), [("vec_task", PlacedBot), ("vector_task", Painting), ("gym_env", Placed)]
)
def test_for_people_a_page_shows_the_games(fixture, task, request, capfd, wait_for):
    made = request.getfixturevalue(fixture)(task, render_mode="human")
    assert made.render_mode == "human"
    (address,) = re.findall(
        r"the games are shown at (http://127\.0\.0\.1:\d+/)", capfd.readouterr().err
    )
    made.reset()
    assert made.render() is None

    def page() -> bytes:
        with suppress(OSError), urllib.request.urlopen(address, timeout=300) as answer:
            return answer.read()
        return b""

    wait_for(page)
    assert b"sc2pool" in page()
    made.close()
    assert not page()


@without_workers
def test_pictures_are_tiled(vec):
    made = vec(*(partial(Drawing, colour) for colour in (10, 20, 30)))
    assert made.render_mode == "rgb_array"
    made.reset()
    images = made.get_images()
    assert [image.shape for image in images] == [(4, 6, 3)] * 3
    tiled = made.render()
    assert tiled.shape == (8, 12, 3)
    corners = tiled[0, 0, 0], tiled[0, 6, 0], tiled[4, 0, 0], tiled[4, 6, 0]
    assert corners == (10, 20, 30, 0)
    np.testing.assert_array_equal(made.render(mode="rgb_array"), tiled)
    with pytest.warns(UserWarning, match="render"):
        assert made.render(mode="something_else") is None


@without_workers
def test_without_pictures_there_is_a_warning_and_none_for_each(vec):
    made = begun(vec(Counting, Counting))
    with pytest.warns(UserWarning, match="render mode is None"):
        assert made.get_images() == [None, None]
    with pytest.warns(UserWarning, match="no `render_mode`"):
        assert made.render() is None


HEIGHT, WIDTH, _ = FRAME_SHAPE
BLURRED = 3.0
"""The codec's allowed error, averaged over a frame; the largest possible value is 255."""


def decoded(path: Path) -> tuple[float, list[Any]]:
    """A video's frames per second, and its frames as arrays of shape (height, width, 3)."""
    stream = imageio_ffmpeg.read_frames(str(path))
    facts = next(stream)
    width, height = facts["size"]
    frames = [np.frombuffer(raw, np.uint8).reshape(height, width, 3) for raw in stream]
    return facts["fps"], frames


def assert_video_shows(folder: Path, frames: list[Any]) -> None:
    """The only video in the folder shows these frames in order, at the speed of real time."""
    (path,) = folder.glob("*.mp4")
    fps, shown = decoded(path)
    assert fps == pytest.approx(22.4 / 8)
    # moviepy samples its clips by time, and its rounding may skip a frame.
    assert len(frames) - 1 <= len(shown) <= len(frames)
    for k, frame in enumerate(shown):
        off = [np.abs(frame.astype(int) - given).mean() for given in frames[k : k + 2]]
        assert min(off) < BLURRED, (k, off)


@without_workers
def test_sb3_records_all_games_in_one_picture(vec_task, tmp_path):
    made = vec_task(Placed, n=2, seed=1, render_mode="rgb_array")
    recorder = begun(VecVideoRecorder(made, str(tmp_path), lambda step: step == 0, video_length=4))
    frames = [made.render()]
    for _ in range(5):  # episodes are three steps long
        recorder.step(np.array([0, 4]))
        frames.append(made.render())
    recorder.close()
    assert frames[0].shape == (2 * HEIGHT, WIDTH, 3)
    assert_video_shows(tmp_path, frames[:5])  # the frames of the reset and of four steps


@without_workers
def test_gymnasium_records_an_episode(gym_env, tmp_path):
    made = gym_env(Placed, render_mode="rgb_array")
    folder = tmp_path / "videos"
    recorder: gymnasium.Env[Any, Any] = RecordVideo(
        made, str(folder), episode_trigger=lambda number: number == 0
    )
    recorder.reset(seed=1)
    frames = [made.render()]
    truncated = False
    while not truncated:
        *_, truncated, _ = recorder.step(0)
        frames.append(made.render())
    recorder.close()
    assert len(frames) == 4, "the episode's last moment is there"
    assert_video_shows(folder, frames)


@without_workers
def test_gymnasium_records_a_vector_of_games(vector_task, tmp_path):
    made = vector_task(Placed, n=2, render_mode="rgb_array")
    folder = tmp_path / "videos"
    recorder = RecordVectorVideo(
        made, str(folder), video_aspect_ratio=(2, 1), step_trigger=lambda step: step == 0
    )
    recorder.reset(seed=1)
    frames = []
    for _ in range(3):
        recorder.step(np.array([0, 4]))
        frames.append(np.concatenate(made.render(), axis=1))
    recorder.close()
    assert_video_shows(folder, frames)


def keeping(directory: Path, **fields: Any) -> PoolConfig:
    return PoolConfig(
        replays=ReplayPolicy(directory, **fields), fault_report_dir=directory.parent / "faults"
    )


def files(directory: Path) -> list[str]:
    """The names of the files in the folder, without the times in them."""
    return sorted(re.sub(r"-\d{8}-\d{6}-", "-", path.name) for path in directory.iterdir())


def loops_of(path: str) -> int:
    """The length of the recorded game in loops."""
    info = mpyq.MPQArchive(path).read_file("sc2pool.info")
    return int(sc_pb.ResponseReplayInfo.FromString(info).game_duration_loops)


@pytest.mark.parametrize(
    ("task", "spares"), [(Paid, 0), (Paid, 1), (PaidBot, 0)], ids=["task", "spare", "bot"]
)
def test_every_kth_and_the_best(vec_task, tmp_path, task, spares):
    """Episode t has three steps and the return (t * 5) % 7, which is 0, 5, 3, 1, 6, 4, …"""
    folder = tmp_path / "replays"
    made = begun(vec_task(task, n=2, spares=spares, seed=0, config=keeping(folder, every=3)))
    named: list[str] = []
    for step in range(1, 10):
        _, _, dones, infos = made.step([0, 0])
        assert dones.all() == (step % 3 == 0)
        for done, info in zip(dones, infos, strict=True):
            if REPLAY in info:
                assert done
                assert loops_of(info[REPLAY]) == 24
                named.append(info[REPLAY])
    assert [re.search(r"(best|every).*episode\d", name)[0][-8:] for name in named] == [
        "episode0",
        "episode1",
        "episode3",
        "episode4",
    ]
    assert files(folder) == [
        "best-env0-episode0-return0.SC2Replay",
        "best-env0-episode4-return6.SC2Replay",
        "best-env1-episode1-return5.SC2Replay",
        "every-env1-episode3-return1.SC2Replay",
    ]


def test_neither_frames_nor_replays_change_anything(vec_task, tmp_path):
    def played(**keywords: Any) -> list[Any]:
        made = vec_task(Paid, n=1, seed=2, **keywords)
        rows = [made.reset()]
        for _ in range(7):
            if "render_mode" in keywords:
                made.render()
            observations, rewards, dones, infos = made.step([3])
            infos[0].pop(REPLAY, None)
            last = infos[0].pop("terminal_observation", None)
            rows.append((observations, rewards, dones, infos, last))
        return rows

    plain = played()
    np.testing.assert_equal(played(render_mode="rgb_array"), plain)
    np.testing.assert_equal(played(config=keeping(tmp_path / "replays", every=1)), plain)


def test_a_faulty_episode(vec_task, tmp_path):
    folder = tmp_path / "replays"
    made = begun(vec_task(Failing, n=1, config=keeping(folder, best=False)))
    with pytest.raises(UserCodeError):
        made.step([0])
    assert files(folder) == ["faulty-env0-episode0.SC2Replay"]
    (path,) = folder.iterdir()
    assert loops_of(str(path)) == 8
