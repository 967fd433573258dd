"""The door to the compiled step path, `sc2pool._fast`, which is optional.

Rule: it changes how fast a step is and nothing else. SC2POOL_PURE=1 leaves it out, for tests and
bug reports; so does an installation without a compiler.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import ModuleType

    from sc2pool._fast import Plain, Wire

_fast: ModuleType | None = None
if os.environ.get("SC2POOL_PURE", "0") == "0":
    with suppress(ImportError):
        from sc2pool import _fast

STEP_PATH: Final = "pure Python" if _fast is None else "compiled"
"""Which one is used, in words."""


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
    """What sends a step's requests and waits for the replies; None if pure Python does.

    Args:
        sock: the descriptor of a game's socket.
        loop: a descriptor that is readable if the event loop has something to do.
    """
    return None if _fast is None else _fast.Wire(sock, loop)


def step_frames(first_id: int, actions: list[bytes], loops: int) -> bytes:
    """The frames of the requests `requests.step_burst`; only if there is a `wire`.

    Args:
        first_id: of the first request; the others follow.
        actions: serialized `Action`s.
        loops: how far to advance.
    """
    assert _fast is not None
    frames: bytes = _fast.step_frames(first_id, actions, loops)
    return frames


def step_replies(data: bytes, first_id: int, acts: bool) -> Plain | None:
    """The observation in the frames of a step's replies, as `Wire.step` reads them.

    Args:
        data: all that was received.
        first_id: the first request's.
        acts: whether there were actions.
    """
    return None if _fast is None else _fast.step_replies(data, first_id, acts)
