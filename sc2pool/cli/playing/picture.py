"""Frames of a game as an animated picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from sc2pool.protocol.game_time import LOOPS_PER_S

_LAST_FRAME_MS = 2000
"""Until the picture begins again."""


def frame_of(pixels: Any) -> Image.Image:
    """A frame, uint8 (height, width, 3), with few colours, as GIF has them."""
    return Image.fromarray(pixels).quantize(dither=Image.Dither.NONE)


def write_picture(path: Path, frames: Sequence[Image.Image], loops: int) -> None:
    """Write a GIF file that takes as long as the game in real time.

    Args:
        path: of the file.
        frames: from `frame_of`, at least one.
        loops: between two frames.
    """
    durations_ms = [round(1000 * loops / LOOPS_PER_S)] * (len(frames) - 1) + [_LAST_FRAME_MS]
    first, *others = frames
    first.save(path, save_all=True, append_images=others, duration=durations_ms, loop=0)
