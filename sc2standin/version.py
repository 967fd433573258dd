"""The versions that the stand-in reports."""

from __future__ import annotations

BASE_BUILD = 81433
"""The build of patch 5.0.3, whose data tables the stand-in serves.

Clients that know several patches choose ids by this number. The build is also the N in the folder
`Versions/Base<N>` of an installation.
"""

GAME_VERSION = "standin-3"
"""The name of the version, which shows clients and users that this is not the real game.

Change the name whenever the rules change: the same seed then leads to other episodes and scores.
"""

DATA_VERSION = "5D414E44494E0002"
"""The version of the data tables, which must change with them; the real game uses a hash."""
