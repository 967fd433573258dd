"""Captures a display's screen as arrays."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sc2pool.realtime.screen.virtual_display import HEIGHT, WIDTH

SHRINK: Final = 4
"""The side of the square of pixels that becomes one pixel."""
SMALL_SHAPE: Final = (1, HEIGHT // SHRINK, WIDTH // SHRINK)
"""Shape of a small frame: channel, rows, columns, as Stable-Baselines3's CNN expects it."""
_WEIGHTS_BGR: Final = np.array([29, 150, 77], np.uint16)
"""Weights of blue, green and red in a grey value, in 1/256; black becomes 0, white 255."""

Frame = NDArray[np.uint8]


class Screen:
    """Captures the game's picture; a capture takes about a millisecond.

    Args:
        display: name of the display, for example `":1"`; None for the user's desktop.
        area: returns the part to capture: left, top, width and height in pixels.
    """

    def __init__(self, display: str | None, area: Callable[[], tuple[int, int, int, int]]) -> None:
        # Imported here, after `needs` has checked that mss is installed.
        import mss  # noqa: PLC0415
        from mss.exception import ScreenShotError  # noqa: PLC0415

        self._connection_error = ScreenShotError
        self._capture = mss.MSS() if display is None else mss.MSS(display=display)
        self._area = area

    def colours(self) -> Frame:
        """A frame in colours, height × width × RGB, uint8."""
        return np.ascontiguousarray(self._bgr()[..., ::-1])

    def small(self) -> Frame:
        """A grey frame of `SMALL_SHAPE`, uint8."""
        return shrunk(self._bgr())

    def _bgr(self) -> Frame:
        left, top, width, height = self._area()
        shot = self._capture.grab({"left": left, "top": top, "width": width, "height": height})
        frame: Frame = np.frombuffer(shot.raw, np.uint8).reshape(height, width, 4)[..., :3]
        return frame if (height, width) == (HEIGHT, WIDTH) else fitted(frame)

    def close(self) -> None:
        """Close the connection, even if the display has ended."""
        with suppress(self._connection_error):
            self._capture.close()


def fitted(bgr: Frame) -> Frame:
    """The frame scaled to `HEIGHT` × `WIDTH`, because Windows may enlarge a window."""
    height, width = bgr.shape[:2]
    rows, columns = np.arange(HEIGHT) * height // HEIGHT, np.arange(WIDTH) * width // WIDTH
    nearest: Frame = bgr[rows[:, np.newaxis], columns]
    return nearest


def shrunk(bgr: Frame) -> Frame:
    """The mean grey of each square of `SHRINK` × `SHRINK` pixels, `SMALL_SHAPE`."""
    grey = (bgr.astype(np.uint16) @ _WEIGHTS_BGR) >> 8
    squares = grey.reshape(SMALL_SHAPE[1], SHRINK, SMALL_SHAPE[2], SHRINK)
    small: Frame = squares.mean(axis=(1, 3)).astype(np.uint8)[np.newaxis]
    return small
