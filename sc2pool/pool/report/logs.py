"""The pool's log, whose records have the env, the instance and the phase as attributes.

This module does not configure the logger, `logging.getLogger("sc2pool")`. A record has the
attributes `env` (for example "env 3"), `instance` (12) and `phase` ("stepping"). A handler can
filter or index by these attributes, and a format can be
`"%(env)s %(instance)d %(phase)s %(message)s"`. The message also names the env and the instance.
Nothing is logged on the step path, and a message is formatted only if a handler takes it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from sc2pool.errors import Phase
from sc2pool.tasks.player import GameFacts

log = logging.getLogger("sc2pool")


def log_launch(seat: str, instance: int, games: Sequence[GameFacts]) -> None:
    """Log that an instance, with its games if it has any, has started."""
    about = (logging.INFO, seat, instance, Phase.LAUNCHING)
    if not games:
        log_instance(*about, "up, without a game")
    for game in games:
        words = "up: %s, process %d, port %d"
        log_instance(*about, words, game.version, game.pid, game.port)


def log_instance(
    level: int, seat: str, instance: int, phase: Phase, message: str, *arguments: Any
) -> None:
    """Log an event of an instance; the names of seat and instance are put before the message."""
    log.log(
        level,
        f"%s, instance %d: {message}",
        seat,
        instance,
        *arguments,
        extra={"env": seat, "instance": instance, "phase": str(phase)},
        stacklevel=2,
    )
