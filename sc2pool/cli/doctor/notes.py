"""Where probes note what they measured, and how a failure is put down to the right check.

Rule: a failure inside `trying(name)` is noted for that check and ends what depends on it, as
`ProbeFailed`; nobody else needs to catch what a game can raise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import psutil

from sc2pool.cli.doctor.verdict import Broke, Unknown
from sc2pool.errors import ConfigError, FaultKind, GameFault


class ProbeFailed(Exception):
    """What was tried failed, and it has been noted."""


class Notes:
    """All measurements of one examination, by the names of the checks they are for.

    Args:
        say: told the name of each check as it is begun, to show that something is going on.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.measured: dict[str, object] = {}
        self._say = say
        self._under_way: str | None = None

    def put(self, name: str, measurement: object) -> None:
        """Notes a measurement."""
        self.measured[name] = measurement

    @contextmanager
    def trying(self, name: str) -> Iterator[None]:
        """In the block, what fails is the outcome of this check.

        Raises:
            ProbeFailed: something failed, and what it was has been noted.
        """
        self._say(name)
        self._under_way = name
        try:
            yield
        except GameFault as fault:
            self.put(name, Broke(fault.detail, fault.kind))
            raise ProbeFailed(name) from fault
        except (ConfigError, OSError, psutil.Error) as error:
            self.put(name, Broke(str(error)))
            raise ProbeFailed(name) from error
        self._under_way = None

    def ran_out_of_time(self, timeout_s: float) -> None:
        """What is under way was cut short."""
        if self._under_way is not None:
            detail = f"this was not done when the {timeout_s:g} s were up"
            self.put(self._under_way, Broke(detail, FaultKind.DEADLINE))

    def rest_unknown(self, names: Iterable[str], reason: str) -> None:
        """Gives those of these checks that have no measurement the same reason for it."""
        for name in names:
            self.measured.setdefault(name, Unknown(reason))
