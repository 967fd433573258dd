"""`sc2pool replay` draws a replay of the pool's."""

from __future__ import annotations

import subprocess
import sys

from PIL import Image


def show(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sc2pool", "replay", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_a_replay_becomes_a_picture(offline, installation, tmp_path):
    offline.start("DefeatRoaches")
    offline.step(40)
    replay, picture = tmp_path / "a.SC2Replay", tmp_path / "a.gif"
    replay.write_bytes(offline.replay())
    done = show(replay, picture, "--game", installation, "--every", 16)
    assert done.returncode == 0, done.stderr
    with Image.open(picture) as image:
        assert (image.size, image.n_frames) == ((640, 480), 4)  # loops 0, 16, 32, 40
    replay.write_bytes(b"no replay")
    done = show(replay, picture, "--game", installation)
    assert done.returncode == 2
    assert "InvalidReplayData not a replay of the stand-in" in done.stderr
