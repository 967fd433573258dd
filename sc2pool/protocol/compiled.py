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

    from sc2pool._fast import Plain

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
