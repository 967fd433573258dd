"""What is to be seen on a display, as arrays."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import numpy as np
from numpy.typing import NDArray

from examples.supertux.display import HEIGHT, WIDTH

SHRINK: Final = 4
"""So many pixels across and down become one."""
SMALL_SHAPE: Final = (1, HEIGHT // SHRINK, WIDTH // SHRINK)
"""Of a small frame: channel, rows, columns, as Stable-Baselines3's CNN wants it."""
_WEIGHTS_BGR: Final = np.array([29, 150, 77], np.uint16)
"""Of the colours in a grey value, of 256; black stays 0, white becomes 255."""
_WHOLE: Final = {"left": 0, "top": 0, "width": WIDTH, "height": HEIGHT}

Frame = NDArray[np.uint8]


class Screen:
    """Captures the screen of one display; about a millisecond a look.

    Args:
        display: its name, `":1"`.
    """

    def __init__(self, display: str) -> None:
        # `needs` has told what to install where it is missing.
        import mss  # noqa: PLC0415
        from mss.exception import ScreenShotError  # noqa: PLC0415

        self._gone = ScreenShotError
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
        """Leave the display, which may be gone."""
        with suppress(self._gone):
            self._capture.close()


def shrunk(bgr: Frame) -> Frame:
    """The mean grey of each square of `SHRINK` × `SHRINK` pixels, `SMALL_SHAPE`."""
    grey = (bgr.astype(np.uint16) @ _WEIGHTS_BGR) >> 8
    squares = grey.reshape(SMALL_SHAPE[1], SHRINK, SMALL_SHAPE[2], SHRINK)
    small: Frame = squares.mean(axis=(1, 3)).astype(np.uint8)[np.newaxis]
    return small
