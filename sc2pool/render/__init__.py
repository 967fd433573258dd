"""Frames drawn from the game's messages; the game's own rendering has no part in it.

Rule: only `sc2pool.render.*` imports Pillow, and it is imported by whoever draws, when it draws.
"""

from __future__ import annotations

from typing import Final

MAP_PX: Final = 480
"""Side of the square that shows the map."""
PANEL_PX: Final = 160
"""Width of the panel right of it."""
FRAME_SHAPE: Final = (MAP_PX, MAP_PX + PANEL_PX, 3)
"""Of every frame: height, width, colours."""
