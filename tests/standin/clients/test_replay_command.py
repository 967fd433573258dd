"""`sc2pool replay` draws a replay of the pool's."""

from __future__ import annotations

import io
import subprocess
import sys

import mpyq
from PIL import Image
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin import mpq


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
    assert f"{replay} is not a replay of this game" in done.stderr
    assert "InvalidReplayData not a replay of the stand-in" in done.stderr


def forged(replay: bytes, **about: object) -> bytes:
    """The replay with another description of its game."""
    files = mpyq.MPQArchive(io.BytesIO(replay)).extract()
    named = {name.decode(): content for name, content in files.items()}
    info = sc_pb.ResponseReplayInfo.FromString(named["sc2pool.info"])
    for name, value in about.items():
        setattr(info, name, value)
    return mpq.pack(named | {"sc2pool.info": info.SerializeToString()})


def test_no_text_of_a_replay_is_a_command_to_the_terminal(offline, installation, tmp_path):
    """Such as the window's title, a screen that is cleared, or a line of the program's own."""
    offline.start()
    replay = tmp_path / "a.SC2Replay"
    replay.write_bytes(
        forged(
            offline.replay(),
            map_name="\x1b]0;title\x07\x1b[2J\nsc2pool: all is well",
            game_version="5\x1b[1A\u202e",
        )
    )
    done = show(replay, "--game", installation)
    assert done.returncode == 0, done.stderr
    first, player = done.stdout.splitlines()
    assert r"\x1b]0;title\x07\x1b[2J\nsc2pool: all is well" in first
    assert first.isprintable()
    assert player.startswith("  player 1: ")


def test_a_replay_of_more_frames_than_a_picture_takes(offline, installation, tmp_path):
    offline.start()
    replay, picture = tmp_path / "a.SC2Replay", tmp_path / "a.gif"
    replay.write_bytes(forged(offline.replay(), game_duration_loops=500_000))
    done = show(replay, picture, "--game", installation)
    assert done.returncode == 2
    assert "has 500,000 loops, of which a picture shows at most 3,000: give --every 167" in (
        done.stderr
    )
    assert not picture.exists()
