"""Shortages of system resources: errors that may not occur again at the next try."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from typing import Any, Final

_SHORTAGES: Final = frozenset(
    {errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
)


def is_shortage(error: OSError) -> bool:
    """True if processes, threads, descriptors, buffers or memory have run out."""
    return error.errno in _SHORTAGES


def start_thread(target: Callable[..., Any], name: str, *arguments: Any) -> threading.Thread:
    """Start a thread that does not keep the process alive.

    If the system refuses a thread, Python raises RuntimeError, as for many other errors. This
    function raises OSError instead, as Python does for a refused process.

    Raises:
        OSError: the system refuses the thread (EAGAIN).
    """
    thread = threading.Thread(target=target, args=arguments, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        raise OSError(errno.EAGAIN, f"no thread, {os.strerror(errno.EAGAIN)}") from error
    return thread
