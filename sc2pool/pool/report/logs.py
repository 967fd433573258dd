"""The pool's log, by instance: each record carries what it is about as attributes too.

    logging.getLogger("sc2pool")            the logger; nothing is configured here
    record.env, .instance, .phase           "env 3", 12, "stepping"

So a handler can filter or index by them (`"%(env)s %(instance)d %(phase)s %(message)s"`), and the
message says the same in words. Rule: nothing is logged on the step path, and no message is
formatted unless it is wanted.
"""

from __future__ import annotations

import logging
from typing import Any

from sc2pool.errors import Phase
from sc2pool.pool.instances.seats import Seat

log = logging.getLogger("sc2pool")


def log_launch(seat: Seat) -> None:
    """Log that the instance that sits here is up."""
    facts = seat.instance.facts
    if facts is None:
        log_instance(logging.INFO, seat, Phase.LAUNCHING, "up, without a game")
        return
    words = "up: %s, process %d, port %d"
    told = facts.version, facts.pid, facts.port
    log_instance(logging.INFO, seat, Phase.LAUNCHING, words, *told)


def log_instance(level: int, seat: Seat, phase: Phase, message: str, *arguments: Any) -> None:
    """Log what happened to the instance that sits here.

    Args:
        phase: what the instance was doing.
        message: without the instance's name, which is put before it.
        arguments: for the message's `%`.
    """
    number = seat.instance.number
    log.log(
        level,
        f"%s, instance %d: {message}",
        seat.name,
        number,
        *arguments,
        extra={"env": seat.name, "instance": number, "phase": str(phase)},
        stacklevel=2,
    )
