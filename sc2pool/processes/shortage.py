"""What the system refuses because it has no more of it now: it may have some a moment later."""

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

    If the system refuses a thread, Python raises RuntimeError, as it does for many mistakes. This
    raises OSError, as Python does for a refused process.

    Raises:
        OSError: EAGAIN; the system refuses it.
    """
    thread = threading.Thread(target=target, args=arguments, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        raise OSError(errno.EAGAIN, f"no thread, {os.strerror(errno.EAGAIN)}") from error
    return thread
