"""Screen capture of a display, as arrays."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import numpy as np
from numpy.typing import NDArray

from examples.supertux.display import HEIGHT, WIDTH

SHRINK: Final = 4
"""Pixels per side of the square that becomes one pixel."""
SMALL_SHAPE: Final = (1, HEIGHT // SHRINK, WIDTH // SHRINK)
"""Shape of a small frame: channel, rows, columns, as Stable-Baselines3's CNN expects it."""
_WEIGHTS_BGR: Final = np.array([29, 150, 77], np.uint16)
"""Weights of blue, green and red in a grey value, in 1/256; black becomes 0, white 255."""
_WHOLE: Final = {"left": 0, "top": 0, "width": WIDTH, "height": HEIGHT}

Frame = NDArray[np.uint8]


class Screen:
    """Captures the screen of one display; a capture takes about a millisecond.

    Args:
        display: name of the display, for example `":1"`.
    """

    def __init__(self, display: str) -> None:
        # Imported here, after `needs` has checked that they are installed.
        import mss  # noqa: PLC0415
        from mss.exception import ScreenShotError  # noqa: PLC0415

        self._connection_error = ScreenShotError
        self._capture = mss.MSS(display=display)

    def colours(self) -> Frame:
        """Height × width × RGB, uint8."""
        return np.ascontiguousarray(self._bgr()[..., ::-1])

    def small(self) -> Frame:
        """A grey frame of `SMALL_SHAPE`, uint8."""
        return shrunk(self._bgr())

    def _bgr(self) -> Frame:
        shot = self._capture.grab(_WHOLE)
        frame: Frame = np.frombuffer(shot.raw, np.uint8).reshape(HEIGHT, WIDTH, 4)[..., :3]
        return frame

    def close(self) -> None:
        """Close the connection; the display may have ended before."""
        with suppress(self._connection_error):
            self._capture.close()


def shrunk(bgr: Frame) -> Frame:
    """The mean grey of each square of `SHRINK` × `SHRINK` pixels, `SMALL_SHAPE`."""
    grey = (bgr.astype(np.uint16) @ _WEIGHTS_BGR) >> 8
    squares = grey.reshape(SMALL_SHAPE[1], SHRINK, SMALL_SHAPE[2], SHRINK)
    small: Frame = squares.mean(axis=(1, 3)).astype(np.uint8)[np.newaxis]
    return small
