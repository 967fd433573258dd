"""What the client sees of an episode: one message, in which only what has changed is set."""

from __future__ import annotations

from sc2standin.view.observation import View

__all__ = ["View"]
