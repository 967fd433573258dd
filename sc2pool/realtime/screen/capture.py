"""Captures a part of the screen as arrays."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sc2pool.errors import ConfigError
from sc2pool.optional import needed_for

_WEIGHTS_BGR: Final = np.array([29, 150, 77], np.uint32)
"""Weights of blue, green and red in a grey value, in 1/256; black becomes 0, white 255."""

Frame = NDArray[np.uint8]
Area = tuple[int, int, int, int]
"""A part of the screen: left, top, width and height in pixels."""


class Capture:
    """Captures the screen of one display; a capture of 320 × 240 takes about a millisecond.

    Args:
        display: name of the display, for example `":1"`; None for Windows' desktop.
    """

    def __init__(self, display: str | None) -> None:
        with needed_for("a screen capture"):
            import mss  # noqa: PLC0415
            from mss.exception import ScreenShotError  # noqa: PLC0415

        self._connection_error = ScreenShotError
        self._capture = mss.MSS() if display is None else mss.MSS(display=display)

    def bgr(self, area: Area) -> Frame:
        """The pixels of this area: height × width × blue, green, red, uint8."""
        left, top, width, height = area
        shot = self._capture.grab({"left": left, "top": top, "width": width, "height": height})
        frame: Frame = np.frombuffer(shot.raw, np.uint8).reshape(height, width, 4)
        return frame[..., :3]

    def close(self) -> None:
        """Close the connection, even if the display has ended."""
        with suppress(self._connection_error):
            self._capture.close()


def fitted(bgr: Frame, size: tuple[int, int]) -> Frame:
    """The frame scaled to this width and height, because Windows may enlarge a window."""
    width, height = size
    given_height, given_width = bgr.shape[:2]
    if (given_width, given_height) == size:
        return bgr
    rows, columns = (
        np.arange(height) * given_height // height,
        np.arange(width) * given_width // width,
    )
    nearest: Frame = bgr[rows[:, np.newaxis], columns]
    return nearest


def shrunk(bgr: Frame, rows: int, columns: int) -> Frame:
    """A small grey frame, 1 × rows × columns, uint8: each pixel is the mean of a rectangle.

    Raises:
        ConfigError: the frame has fewer pixels.
    """
    height, width = bgr.shape[:2]
    if not (0 < rows <= height and 0 < columns <= width):
        raise ConfigError(
            f"a grey frame of {rows} × {columns} pixels, expected at least 1 × 1 and at most "
            f"{height} × {width}, the size of the picture"
        )
    tops, lefts = np.arange(rows) * height // rows, np.arange(columns) * width // columns
    # Add up the rows first: this is fast, and leaves little for the other steps.
    sums = np.add.reduceat(bgr, tops, axis=0, dtype=np.uint32)
    sums = np.add.reduceat(sums, lefts, axis=1) @ _WEIGHTS_BGR
    pixels = np.outer(np.diff(tops, append=height), np.diff(lefts, append=width))
    small: Frame = (sums // (256 * pixels)).astype(np.uint8)[np.newaxis]
    return small
