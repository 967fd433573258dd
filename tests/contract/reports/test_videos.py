"""Videos that SB3 and gymnasium write of games: decoded again, they show what was rendered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import imageio_ffmpeg
import numpy as np
import pytest
from gymnasium.wrappers import RecordVideo
from gymnasium.wrappers.vector import RecordVideo as RecordVectorVideo
from stable_baselines3.common.vec_env import VecVideoRecorder

from sc2pool.render import FRAME_SHAPE
from tests.contract.conftest import without_workers
from tests.contract.tasks import Placed

pytestmark = without_workers

HEIGHT, WIDTH, _ = FRAME_SHAPE
BLURRED = 3.0
"""How far the codec may be off, of 255, on average over a frame."""


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
    # moviepy samples its clips by time, and its rounding may leave one out.
    assert len(frames) - 1 <= len(shown) <= len(frames)
    for k, frame in enumerate(shown):
        off = [np.abs(frame.astype(int) - given).mean() for given in frames[k : k + 2]]
        assert min(off) < BLURRED, (k, off)


def test_sb3_records_all_games_in_one_picture(vec_task, tmp_path):
    made = vec_task(Placed, n=2, seed=1, render_mode="rgb_array")
    recorder = VecVideoRecorder(made, str(tmp_path), lambda step: step == 0, video_length=4)
    recorder.reset()
    frames = [made.render()]
    for _ in range(5):  # its episodes are three steps long
        recorder.step(np.array([0, 4]))
        frames.append(made.render())
    recorder.close()
    assert frames[0].shape == (2 * HEIGHT, WIDTH, 3)
    assert_video_shows(tmp_path, frames[:5])  # the one before the first step is one more


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
