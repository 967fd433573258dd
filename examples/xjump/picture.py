"""Reads the number of the floor from xjump's picture, and whether the game is over.

The number has ten digits in the X server's own font (6x13), so every pixel of a digit is known.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from sc2pool.realtime.screen.capture import Frame

SIZE: Final = (546, 555)
"""Width and height of the game's window in pixels."""
_TOP, _LEFT, _ROWS, _COLUMNS, _COUNT = 77, 202, 9, 6, 10
"""Top and left of the floor's number, rows and columns of a digit, and the number of digits."""
_DIGITS: Final = {
    0x085228A28A2508: 0,
    0x0862820820823E: 1,
    0x1C8A208421083E: 2,
    0x3E08421C08289C: 3,
    0x0410C51493E104: 4,
    0x3E820B3208289C: 5,
    0x1C8A083C8A289C: 6,
    0x3E084108210410: 7,
    0x1C8A289C8A289C: 8,
    0x1C8A289E08289C: 9,
}
"""Each digit's pixels as bits, row by row."""
_BOX: Final = (203, slice(202, 268))
"""The upper edge of the box "Game Over". Without the box, the edge shows bricks or a floor."""


def floor_of(picture: Frame) -> int | None:
    """The number of the floor; None if it is not readable, for example while it is drawn."""
    area = picture[_TOP : _TOP + _ROWS, _LEFT : _LEFT + _COLUMNS * _COUNT].max(axis=-1) > 127
    floor = 0
    for digit in np.split(area, _COUNT, axis=1):
        value = _DIGITS.get(int("".join("01"[int(bit)] for bit in digit.flat), 2))
        if value is None:
            return None
        floor = 10 * floor + value
    return floor


def is_over(picture: Frame) -> bool:
    """True if all pixels of `_BOX` are equal: the box or the list of best games is shown."""
    pixels = picture[_BOX]
    return bool((pixels == pixels[0]).all())
