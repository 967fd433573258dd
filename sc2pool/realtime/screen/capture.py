"""Captures a part of the screen as an array, and finds a window among the open windows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sc2pool.errors import ConfigError
from sc2pool.optional import needed_for

_WEIGHTS_BGR: Final = np.array([29, 150, 77], np.uint32)
"""Weights of blue, green and red in a grey value, in units of 1/256. The weights add up to 256."""

Frame = NDArray[np.uint8]
Area = tuple[int, int, int, int]
"""A part of the screen: left, top, width and height in pixels."""


class Capture:
    """Captures the screen of `display`, 320 × 240 pixels in about 1 ms. None: Windows' desktop."""

    def __init__(self, display: str | None) -> None:
        with needed_for("a screen capture"):
            import mss  # noqa: PLC0415
            from mss.exception import ScreenShotError  # noqa: PLC0415

        self._connection_error = ScreenShotError
        self._capture = mss.MSS() if display is None else mss.MSS(display=display)

    def bgr(self, area: Area) -> Frame:
        """The pixels of this area, uint8, height × width × 3 (blue, green, red)."""
        left, top, width, height = area
        shot = self._capture.grab({"left": left, "top": top, "width": width, "height": height})
        frame: Frame = np.frombuffer(shot.raw, np.uint8).reshape(height, width, 4)
        return frame[..., :3]

    def close(self) -> None:
        """Close the connection, even if the display has ended."""
        with suppress(self._connection_error):
            self._capture.close()


def fitted(bgr: Frame, size: tuple[int, int]) -> Frame:
    """The frame scaled to this width and height, because Windows may have enlarged the window."""
    width, height = size
    given_height, given_width = bgr.shape[:2]
    if (given_width, given_height) == size:
        return bgr
    rows = np.arange(height) * given_height // height
    columns = np.arange(width) * given_width // width
    nearest: Frame = bgr[rows[:, np.newaxis], columns]
    return nearest


def shrunk(bgr: Frame, rows: int, columns: int) -> Frame:
    """A small grey frame, uint8, 1 × rows × columns. Each pixel is the mean of a part of `bgr`.

    Raises `ConfigError` if `bgr` has fewer rows or columns than requested.
    """
    height, width = bgr.shape[:2]
    if not (0 < rows <= height and 0 < columns <= width):
        raise ConfigError(
            f"a grey frame of {rows} × {columns} pixels, expected at least 1 × 1 and at most "
            f"{height} × {width}, the size of the picture"
        )
    tops, lefts = np.arange(rows) * height // rows, np.arange(columns) * width // columns
    # Add up the rows first, which is fast and leaves little data for the other steps.
    sums = np.add.reduceat(bgr, tops, axis=0, dtype=np.uint32)
    sums = np.add.reduceat(sums, lefts, axis=1) @ _WEIGHTS_BGR
    pixels = np.outer(np.diff(tops, append=height), np.diff(lefts, append=width))
    small: Frame = (sums // (256 * pixels)).astype(np.uint8)[np.newaxis]
    return small


_SHOWN: Final = 10
"""The greatest number of windows that an error lists."""


class OpenWindow(NamedTuple):
    """A visible window of the desktop; `title` may be empty, and `pid` is None if it is unknown."""

    handle: int
    title: str
    pid: int | None

    def __str__(self) -> str:
        return f"{self.title!r} of process {self.pid or 'unknown'}"


def the_one(windows: Sequence[OpenWindow], title: str | None, pid: int | None) -> OpenWindow | None:
    """The window whose title contains `title`, and that belongs to the process `pid`.

    None if no window fits. Raises `ConfigError` if several windows fit.
    """
    found = [
        one
        for one in windows
        if (pid is None or one.pid == pid)
        and (title is None or title.casefold() in one.title.casefold())
    ]
    if len(found) > 1:
        raise ConfigError(
            f"{len(found)} windows {described(title, pid)}: {listed(found)}; expected one: give a "
            "longer title, or the pid of the game"
        )
    return found[0] if found else None


def described(title: str | None, pid: int | None) -> str:
    """The properties of the wanted window, in words for an error."""
    parts = [f"have {title!r} in the title"] if title is not None else []
    parts += [f"belong to process {pid}"] if pid is not None else []
    return " and ".join(parts)


def listed(windows: Sequence[OpenWindow]) -> str:
    """The windows in words, for an error; windows without a title are left out."""
    named = [str(one) for one in windows if one.title]
    more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
    return ", ".join(named[:_SHOWN]) + more if named else "none"
