"""Which of the open windows is the game's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from sc2pool.errors import ConfigError

_SHOWN: Final = 10
"""The greatest number of windows that an error lists."""


class OpenWindow(NamedTuple):
    """A visible window of the desktop.

    Attributes:
        handle: the system's number of the window.
        title: its title; may be empty.
        pid: the process of the window; None if the window does not say it.
    """

    handle: int
    title: str
    pid: int | None

    def __str__(self) -> str:
        return f"{self.title!r} of process {self.pid or 'unknown'}"


def the_one(windows: Sequence[OpenWindow], title: str | None, pid: int | None) -> OpenWindow | None:
    """The window whose title contains `title`, or that belongs to the process `pid`.

    Returns:
        The window; None if no window fits.

    Raises:
        ConfigError: there are several.
    """
    found = [
        one
        for one in windows
        if (pid is None or one.pid == pid)
        and (title is None or title.casefold() in one.title.casefold())
    ]
    if len(found) > 1:
        raise ConfigError(
            f"{len(found)} windows {described(title, pid)}: {listed(found)}; expected one: give a "
            "longer title, or the pid of the game"
        )
    return found[0] if found else None


def described(title: str | None, pid: int | None) -> str:
    """The property that was looked for, in words."""
    parts = [f"have {title!r} in the title"] if title is not None else []
    parts += [f"belong to process {pid}"] if pid is not None else []
    return " and ".join(parts)


def listed(windows: Sequence[OpenWindow]) -> str:
    """The windows in words, for an error; those without a title are left out."""
    named = [str(one) for one in windows if one.title]
    more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
    return ", ".join(named[:_SHOWN]) + more if named else "none"
