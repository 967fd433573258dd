"""The client's view of an episode: one message, in which only the changed fields are set."""

from __future__ import annotations

from sc2standin.view.observation import View

__all__ = ["View"]
