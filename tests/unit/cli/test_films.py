from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sc2pool.cli.films import Video

pytest.importorskip("imageio_ffmpeg")


class Pool:
    """The part of a pool that a video needs."""

    def render(self, envs: list[int]) -> list[Any]:
        return [np.zeros((48, 64, 3), np.uint8) for _ in envs]


def test_a_video_that_ffmpeg_could_not_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """ffmpeg reports no error if the disk becomes full at the end."""

    def write_frames(path: str, *_: Any, **__: Any) -> Iterator[None]:
        Path(path).write_bytes(b"\0\0\0\x20ftypisom")
        while True:
            yield

    monkeypatch.setattr("imageio_ffmpeg.write_frames", write_frames)
    film = Video(tmp_path / "a.mp4", Pool(), fps=2.0)  # type: ignore[arg-type]
    film.film(False)
    film.film(True)
    assert film.failed
    assert capsys.readouterr().out == f"cannot write {tmp_path}/a.mp4: it was not finished\n"
    assert not list(tmp_path.iterdir())


def test_a_video_that_is_finished(tmp_path: Path) -> None:
    film = Video(tmp_path / "a.mp4", Pool(), fps=2.0)  # type: ignore[arg-type]
    for over in (False, False, True):
        film.film(over)
    assert not film.failed
    assert [path.name for path in tmp_path.iterdir()] == ["a.mp4"]
