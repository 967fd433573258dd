"""The versions that the stand-in reports."""

from __future__ import annotations

BASE_BUILD = 81433
"""The build of patch 5.0.3, whose data tables it serves; clients that know several patches choose
ids by it. `Versions/Base<N>` of an installation has the same number."""

GAME_VERSION = "standin-3"
"""Shows clients and their users that this is not the real game. Must change with the rules:
episodes under a seed, scores and replays of another version are other ones."""

DATA_VERSION = "5D414E44494E0002"
"""Must change with the data tables, as the real game's hash does."""
