"""The versions that the stand-in reports."""

from __future__ import annotations

BASE_BUILD = 81433
"""The build of patch 5.0.3, whose data tables the stand-in serves.

Clients that know several patches choose ids by this number. It is also the N in the folder
`Versions/Base<N>` of an installation.
"""

GAME_VERSION = "standin-3"
"""Shows clients and their users that this is not the real game.

Change it whenever the rules change, because the same seed then leads to other episodes and scores.
"""

DATA_VERSION = "5D414E44494E0002"
"""Change it whenever the data tables change; in the real game it is a hash of the tables."""
