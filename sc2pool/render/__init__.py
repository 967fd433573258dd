"""Draws frames from the game's messages; the game's own rendering is not used.

Rule: in a worker only the modules of this package import Pillow, and they are imported at the first
frame.
"""

from __future__ import annotations

from typing import Final

MAP_PX: Final = 480
"""Side of the map's square."""
PANEL_PX: Final = 160
"""Width of the panel to the right of the map."""
FRAME_SHAPE: Final = (MAP_PX, MAP_PX + PANEL_PX, 3)
"""The shape of every frame: height, width, colours."""
