"""The checks: the doctor's questions, the judgement of each measurement, and advice.

A check is one function, decorated by its section, in the order of the report. Its parameters are
the measurement, and become `measured` in the JSON report. To add a check, write its function in the
module of its subject, and the measurement in the module that this module's docstring names. The
checks of `machine` and `game` are always made, the others only with `--full`.

Rules: the functions are pure and do not depend on a particular game. sc2pool's expectations of a
game are written only here. DIFFERS means that the game behaves in another way but can be played;
the advice says which disadvantage that has.
"""

from __future__ import annotations

from collections.abc import Iterable

from sc2pool.doctor.checks.ends import ENDS
from sc2pool.doctor.checks.game import BEHAVIOUR, TIMES
from sc2pool.doctor.checks.launches import LAUNCHES
from sc2pool.doctor.checks.machine import INSTALLATION, MACHINE, map_check
from sc2pool.doctor.checks.maps import MAPS
from sc2pool.doctor.checks.matches import MATCHES
from sc2pool.doctor.checks.messages import MESSAGES
from sc2pool.doctor.checks.resets import RESETS
from sc2pool.doctor.findings import Check


def all_checks(map_names: Iterable[str], *, full: bool = False) -> list[Check[...]]:
    """The checks in the order of the report, with one for each of these maps.

    Args:
        map_names: the maps.
        full: whether to include the checks of `--full`.
    """
    usual = [*INSTALLATION, *map(map_check, map_names), *MACHINE, *TIMES, *BEHAVIOUR]
    return usual + ([*ENDS, *RESETS, *MATCHES, *LAUNCHES, *MAPS, *MESSAGES] if full else [])
