"""Imports the compiled step path, `sc2pool._fast`, which is optional.

Rules: the compiled path changes only the speed of a step. SC2POOL_PURE=1 disables it, for tests
and bug reports. If sc2pool was installed without a compiler, there is no compiled path. Workers
without a game use this module too, so it does not import the protocol's messages.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sc2pool import _fast

    fast = _fast
else:
    fast = None
    """The compiled module; None in pure Python."""
    if os.environ.get("SC2POOL_PURE", "0") == "0":
        with suppress(ImportError):
            from sc2pool import _fast as fast

log = logging.getLogger("sc2pool")

STEP_PATH: Final = "pure Python" if fast is None else "compiled"
"""The name of the step path that is in use."""


@cache
def warn_if_hidden() -> None:
    """Warn once if a clone in the current folder hides an installed, faster sc2pool."""
    if STEP_PATH == "compiled" or "SC2POOL_PURE" in os.environ:
        return
    from importlib import metadata  # noqa: PLC0415 - seldom needed, and slows the start

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
