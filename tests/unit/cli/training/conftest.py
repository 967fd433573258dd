from __future__ import annotations

import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest


@contextmanager
def _full_disk() -> Iterator[None]:
    """No file of this process grows in the block."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.fixture
def full_disk() -> Callable[[], AbstractContextManager[None]]:
    """A context manager: no file of this process grows in its block."""
    return _full_disk
