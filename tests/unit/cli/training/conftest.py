from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest


@pytest.fixture
def full_disk(
    limited: Callable[[str, int], AbstractContextManager[None]],
) -> Callable[[], AbstractContextManager[None]]:
    """A context manager: no file of this process grows in its block."""
    return lambda: limited("FSIZE", 0)
