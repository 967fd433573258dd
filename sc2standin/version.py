"""The versions that the stand-in reports."""

from __future__ import annotations

BASE_BUILD = 81433
"""The build of patch 5.0.3, whose data tables the stand-in serves.

Clients that know several patches choose ids by it. `Versions/Base<N>` of an installation has the
same number.
"""

GAME_VERSION = "standin-3"
"""Shows clients and their users that this is not the real game.

It must change with the rules: another version has other episodes under a seed, scores and replays.
"""

DATA_VERSION = "5D414E44494E0002"
"""It must change with the data tables, as the real game's hash does."""
