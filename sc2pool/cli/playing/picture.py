"""Frames of a game as an animated picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from sc2pool.cli.stop import say
from sc2pool.pool.vec_pool import VecPool

_LAST_FRAME_MS = 2000
"""Until the picture begins again."""


class GifFilm:
    """The first episode of a pool's first env, as a GIF file; written when the episode is over.

    Args:
        path: of the file.
        pool: renders the frames.
        fps: frames per second.
    """

    def __init__(self, path: Path, pool: VecPool, fps: float) -> None:
        self._path = path
        self._pool = pool
        self._fps = fps
        self._frames: list[Image.Image] = []
        self._over = False

    def film(self, over: bool) -> None:
        """Add what the env shows now.

        Args:
            over: its episode has ended, so that it already shows the next one.
        """
        if self._over:
            return
        self._over = over
        if not over:
            self._frames.append(frame_of(self._pool.render([0])[0]))
            return
        try:
            write_picture(self._path, self._frames, self._fps)
        except OSError as error:
            say(f"cannot write {self._path}: {error.strerror or error}")

    def close(self) -> None:
        """Drop the frames."""
        self._frames.clear()


def frame_of(pixels: Any) -> Image.Image:
    """A frame, uint8 (height, width, 3), with few colours, as GIF has them."""
    return Image.fromarray(pixels).quantize(dither=Image.Dither.NONE)


def write_picture(path: Path, frames: Sequence[Image.Image], fps: float) -> None:
    """Write a GIF file.

    Args:
        path: of the file.
        frames: from `frame_of`, at least one.
        fps: frames per second; that of the game in real time, so that it takes as long.
    """
    durations_ms = [round(1000 / fps)] * (len(frames) - 1) + [_LAST_FRAME_MS]
    first, *others = frames
    first.save(path, save_all=True, append_images=others, duration=durations_ms, loop=0)
