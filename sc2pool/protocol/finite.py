"""Checks that the numbers of an observation are finite, which no type of the protocol says.

    require_places    where all units are                        with the columns
    require_unit      the numbers of a unit (`_NAMES`)           with its message
    require_units     the same of all units                      with the whole reply
    require_score     the details of the score                   with the whole reply

Why: a NaN would reach the task's hooks, and what they make of it would be called an error of the
user's. Rule: one sum for many numbers, because a sum is finite only if all of its terms are (they
have 32 bits, so it cannot overflow); which of them is not is found afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from math import isfinite
from operator import attrgetter
from typing import Any, Final

from s2clientprotocol import raw_pb2, score_pb2

from sc2pool.errors import FaultKind, GameFault

_NAMES: Final = ("pos.x", "pos.y", "pos.z", "health", "shield", "energy", "weapon_cooldown")
_numbers_of_unit: Final = attrgetter(*_NAMES)
_ENDS_LIKE_NAN: Final = re.compile(rb"[\x80-\xff][\x7f\xff]")
"""The last two bytes of a 32-bit number, little-endian, that is NaN or infinite; the end of one
number and the begin of the next may look like it, too."""


def require_places(columns: Any) -> None:
    """Check where the units are.

    Args:
        columns: the `units` of a `sparse.RawColumns`.

    Raises:
        GameFault: BAD_REPLY; a coordinate is NaN or infinite.
    """
    place = columns.pos
    if not isfinite(sum(place.x) + sum(place.y)):
        _complain_of_columns(columns)


def require_unit(unit: raw_pb2.Unit) -> None:
    """Check one unit.

    Raises:
        GameFault: BAD_REPLY; a number of it is NaN or infinite.
    """
    place = unit.pos  # `_numbers_of_unit` takes longer
    vitals = unit.health + unit.shield + unit.energy + unit.weapon_cooldown
    if not isfinite(place.x + place.y + place.z + vitals):
        _complain("a unit", _NAMES, _numbers_of_unit(unit))


def require_units(columns: Any) -> None:
    """Check all units.

    Args:
        columns: the `units` of a `sparse.RawColumns`.

    Raises:
        GameFault: BAD_REPLY; a number of a unit is NaN or infinite.
    """
    if not isfinite(sum(map(sum, _numbers_of_unit(columns)))):
        _complain_of_columns(columns)


def require_score(details: bytes) -> None:
    """Check the details of the score, a serialized message; the score itself is a whole number.

    Raises:
        GameFault: BAD_REPLY; a number is NaN or infinite.
    """
    if _ENDS_LIKE_NAN.search(details):
        decoded = score_pb2.ScoreDetails.FromString(details)
        _complain("the score", _DETAILS, attrgetter(*_DETAILS)(decoded))


def _complain_of_columns(columns: Any) -> None:
    for name, column in zip(_NAMES, _numbers_of_unit(columns), strict=True):
        _complain("a unit", [name] * len(column), column)


def _complain(whose: str, names: Iterable[str], numbers: Iterable[float]) -> None:
    for name, number in zip(names, numbers, strict=True):
        if not isfinite(number):
            detail = f"the {name} of {whose} is {number}, expected a finite number"
            raise GameFault(FaultKind.BAD_REPLY, detail)


def _names_in(message_type: Any, before: str = "") -> Iterator[str]:
    """The names of all numbers in a message and in its parts."""
    for field in message_type.fields:
        if field.message_type is None:
            yield before + field.name
        else:
            yield from _names_in(field.message_type, f"{before}{field.name}.")


_DETAILS: Final = tuple(_names_in(score_pb2.ScoreDetails.DESCRIPTOR))
