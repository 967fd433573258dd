"""Shared memory without a name, freed when the last process that maps it ends.

On Linux the memory is a memfd. On other systems the memory is a mapped file. POSIX systems unlink
the file as soon as it is open, and Windows deletes the file at its last close. Other processes get
the memory's descriptor, never a name. The pages are allocated when the size is set, so that a
shortage raises an error at that time and not a SIGBUS later. `multiprocessing.shared_memory` is
unsuitable: such a memory is found by its name, and the first process outside `multiprocessing` that
exits would destroy the memory.
"""

from __future__ import annotations

import errno
import math
import mmap
import os
import tempfile
from pathlib import Path

from sc2pool.errors import ConfigError
from sc2pool.platform import LINUX, WINDOWS

USE_MEMFD = LINUX


def create() -> int:
    """Make a new, empty memory and return its descriptor."""
    if LINUX and USE_MEMFD:
        return os.memfd_create("sc2pool", os.MFD_CLOEXEC)
    descriptor, path = tempfile.mkstemp(prefix="sc2pool-")
    if WINDOWS:
        os.close(descriptor)
        return os.open(path, os.O_RDWR | os.O_BINARY | os.O_NOINHERIT | os.O_TEMPORARY)
    Path(path).unlink()
    return descriptor


def write(descriptor: int, content: bytes) -> None:
    """Write the content to an empty memory, which gets the content's size."""
    with open(descriptor, "wb", closefd=False) as memory:
        memory.write(content)


def read(descriptor: int, size_bytes: int) -> bytes:
    """The first `size_bytes` bytes of the memory."""
    with map_memory(descriptor, size_bytes) as memory:
        return memory[:]


def claim(descriptor: int, size_bytes: int) -> None:
    """Set the memory's size, fill it with zeros, allocate its pages; ConfigError if too large."""
    try:
        # A memfd has no limit, so an allocation of more memory than exists would end the trainer.
        if size_bytes > _physical_bytes():
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
        os.ftruncate(descriptor, 0)
        if LINUX:
            os.posix_fallocate(descriptor, 0, size_bytes)
        else:
            os.ftruncate(descriptor, size_bytes)
    except OSError as error:
        raise ConfigError(
            f"cannot claim {size_bytes} bytes of shared memory for queue pairs: {error.strerror}"
        ) from error


def _physical_bytes() -> float:
    if WINDOWS:
        return math.inf
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def map_memory(descriptor: int, size_bytes: int, offset_bytes: int = 0) -> mmap.mmap:
    """Map a part of the memory. `offset_bytes` is a multiple of `mmap.ALLOCATIONGRANULARITY`."""
    return mmap.mmap(descriptor, size_bytes, offset=offset_bytes)
