"""Writes frames of a game as an animated picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from sc2pool.cli.training.video import Film
from sc2pool.integration import VecPool
from sc2pool.utilities import replacing

MOST_FRAMES = 3_000
"""Limit of frames, because all frames are in memory (0.3 MB each)."""
_LAST_FRAME_MS = 2000
"""Duration of the last frame, before the picture begins again."""
_LONGEST_FRAME_MS = 655_350
"""Limit of the format, which has hundredths of a second in 16 bits."""


class GifFilm(Film):
    """A film as a GIF file, which is written at the episode's end."""

    def __init__(self, path: Path, pool: VecPool, fps: float) -> None:
        super().__init__(path, pool, fps)
        self._frames: list[Image.Image] = []

    def _add(self, frame: Any) -> None:
        if len(self._frames) >= MOST_FRAMES:
            raise OSError(f"the episode has more than {MOST_FRAMES:,} frames")
        self._frames.append(frame_of(frame))

    def _finish(self) -> None:
        write_picture(self._path, self._frames, self._fps)

    def close(self) -> None:
        self._frames.clear()


def frame_of(pixels: Any) -> Image.Image:
    """A frame, uint8 (height, width, 3), as an image with at most 256 colours, for GIF."""
    return Image.fromarray(pixels).quantize(dither=Image.Dither.NONE)


def write_picture(path: Path, frames: Sequence[Image.Image], fps: float) -> None:
    """Write a GIF file of at least one frame from `frame_of`, at `fps` frames per second.

    Raises:
        OSError: the file cannot be written.
    """
    frame_ms = min(round(1000 / fps), _LONGEST_FRAME_MS)
    durations_ms = [frame_ms] * (len(frames) - 1) + [_LAST_FRAME_MS]
    first, *others = frames
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as unfinished:
        first.save(unfinished, save_all=True, append_images=others, duration=durations_ms, loop=0)
