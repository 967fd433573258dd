"""What the stand-in says it is."""

from __future__ import annotations

BASE_BUILD = 75689
"""The build whose API is spoken; the installation's `Versions/Base<N>` bears the same number."""

GAME_VERSION = "standin-1"
"""Tells clients, and through them people, that this is not the real game."""

DATA_VERSION = "5D414E44494E0001"
"""Changes with the data tables, as the real game's hash does."""
