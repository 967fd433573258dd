"""Probes of the installation: which one, and which maps it holds."""

from __future__ import annotations

from pathlib import Path

from sc2pool.cli.doctor.checks import map_check
from sc2pool.cli.doctor.measurements import Found, MapPlace
from sc2pool.cli.doctor.notes import Notes, ProbeFailed
from sc2pool.config import GameSetup
from sc2pool.errors import ConfigError
from sc2pool.game.installation import MAP_SUFFIX, Installation, find, find_map
from sc2pool.tasks.minigames.scores import PUBLISHED
from sc2pool.tasks.registry import BUILT_IN, resolve

Playable = tuple[GameSetup, Path]
"""What is played in the examination, and its map."""


def tasks_by_map() -> dict[str, list[str]]:
    """The mini-games' maps and all others of built-in tasks, each with the tasks played on it."""
    tasks: dict[str, list[str]] = {name: [] for name in PUBLISHED}
    for name in BUILT_IN:
        tasks.setdefault(resolve(name).map_name, []).append(name)
    return tasks


def probe_installation(game: str, notes: Notes) -> Installation | None:
    """Looks for the installation; None if there is none."""
    try:
        with notes.trying("game"):
            found = find(game)
    except ProbeFailed:
        return None
    notes.put("game", Found(found.root, found.executable, found.base_build, found.found_by))
    return found


def probe_maps(
    installation: Installation, tasks: dict[str, list[str]], notes: Notes
) -> Playable | None:
    """Looks for each of the maps; one that can be played, None if there is none."""
    playable = None
    for name, players in tasks.items():
        path = locate(installation, name)
        place = MapPlace(path, where_it_belongs(installation, name), tuple(players))
        notes.put(map_check(name), place)
        if path is not None and playable is None:
            setup = resolve(players[0]).game_setup() if players else GameSetup(name)
            playable = setup, path
    return playable


def locate(installation: Installation, map_name: str) -> Path | None:
    """The map's file, None if it is not installed."""
    try:
        return find_map(installation, map_name)
    except ConfigError:
        return None


def where_it_belongs(installation: Installation, map_name: str) -> Path:
    """Where the file of a map that is missing should be put."""
    maps = installation.maps or installation.root / "Maps"
    return maps / "mini_games" / f"{map_name}{MAP_SUFFIX}"
