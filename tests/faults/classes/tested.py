"""Which of the env classes are tested here: all in the long form, else what is quick to import."""

from __future__ import annotations

import os

from every_class import LIBRARIES

from tests.tiers import LONGER

_SLOW_TO_IMPORT = "SC2TianshouVectorEnv"
"""Its library alone takes 4 s of CPU; `tests/libraries` has tests of this class that always run."""
TESTED = [name for name in LIBRARIES if name != _SLOW_TO_IMPORT or os.environ.get(LONGER)]
