"""Draws frames from the game's messages, without the game's own rendering.

In a worker only this package's modules import Pillow, and the first frame imports these modules.
"""

from __future__ import annotations

from typing import Final

MAP_PX: Final = 480
"""Side, in pixels, of the square that shows the map."""
PANEL_PX: Final = 160
"""Width, in pixels, of the panel to the right of the map."""
FRAME_SHAPE: Final = (MAP_PX, MAP_PX + PANEL_PX, 3)
"""The shape of every frame: height, width, colours."""
