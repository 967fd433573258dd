"""Which of the env classes are tested here: all in the long form, else what is quick to import."""

from __future__ import annotations

from every_class import LIBRARIES

from tests.tiers import is_long

_SLOW_TO_IMPORT = "SC2TianshouVectorEnv"
"""Its library alone takes 4 s of CPU; `tests/libraries` has tests of this class that always run."""
TESTED = [name for name in LIBRARIES if name != _SLOW_TO_IMPORT or is_long()]
