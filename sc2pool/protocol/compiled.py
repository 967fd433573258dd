"""The door to the compiled step path, `sc2pool._fast`, which is optional.

Rules: it changes how fast a step is and nothing else. SC2POOL_PURE=1 leaves it out, for tests and
bug reports; so does an installation without a compiler. Workers without a game use it, too, so the
protocol's messages are not imported here.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from sc2pool._fast import Headers, Plain, Requests, Ringing, Row, Wire

log = logging.getLogger("sc2pool")
_fast: ModuleType | None = None
if os.environ.get("SC2POOL_PURE", "0") == "0":
    with suppress(ImportError):
        from sc2pool import _fast

STEP_PATH: Final = "pure Python" if _fast is None else "compiled"
"""Which one is used, in words."""


@cache
def warn_if_hidden() -> None:
    """Say once that a clone in the current folder hides an installed sc2pool that is faster."""
    if STEP_PATH == "compiled" or "SC2POOL_PURE" in os.environ:
        return
    from importlib import metadata  # noqa: PLC0415 - seldom needed, and workers start faster

    here = Path(__file__).parents[1]
    for one in metadata.distributions(name="sc2pool"):
        installed = Path(str(one.locate_file("sc2pool")))
        if installed != here and any(installed.glob("_fast.*")):
            log.warning(
                "sc2pool comes from %s, without the compiled step path, and not from %s, which has "
                "it: start Python in another folder",
                here,
                installed,
            )
            return


def observation(payload: bytes, request_id: int) -> Plain | None:
    """The observation in a reply in which nothing is unusual; it needs no further check.

    Args:
        payload: a serialized `Response`.
        request_id: the request's.

    Returns:
        None if pure Python must read the reply and judge it.
    """
    return None if _fast is None else _fast.observation(payload, request_id)


def wire(sock: int, loop: int) -> Wire | None:
    """The compiled exchange of a step's requests and replies; None if pure Python does it.

    Args:
        sock: the descriptor of a game's socket.
        loop: a descriptor that is readable if the event loop has something to do.
    """
    return None if _fast is None else _fast.Wire(sock, loop)


def row(words: Any, places: Sequence[tuple[Any, Any]], **at: Any) -> Row | None:
    """The compiled writer of a worker's plain transitions; None if pure Python does it.

    Args:
        words: the slot's header, as an array.
        places: of the slot's two places, the arrays of the observation and of the mask.
        at: more; see `_fast.Row`.
    """
    if _fast is None:
        return None
    found: Row = _fast.Row(words, *(array for place in places for array in place), **at)
    return found


def requests(words: Any, request: int) -> Requests | None:
    """The compiled wait for the trainer's next request; None if pure Python does it.

    Args:
        words: the slot's header, as an array.
        request: which word holds the number of the newest request.
    """
    return None if _fast is None else _fast.Requests(words, request=request)


def ringing(doorbell: int, again: Callable[[], None], later: Callable[[], None]) -> Ringing | None:
    """The compiled ring of the trainer's doorbell; None if pure Python does it.

    Args:
        doorbell: the descriptor to write to.
        again: called if that fails.
        later: see `sc2pool.pool.worker.doorbells.Ringing`.
    """
    return None if _fast is None else _fast.Ringing(doorbell, again, later)


def headers(columns: tuple[Any, Any, Any, Any], slots: list[int]) -> Headers | None:
    """The compiled sender of requests to some slots, which also finds replies; None without it.

    Args:
        columns: of the slots, an array each: sequences, requests, replies, flags.
        slots: the numbers of these slots.
    """
    return None if _fast is None else _fast.Headers(*columns, slots)


def all_within(numbers: Any, low: int, high: int) -> bool:
    """True if all numbers are in [low, high); False also if pure Python must look.

    Args:
        numbers: an array.
    """
    return _fast is not None and _fast.all_within(numbers, low, high)
