"""Ends the interpreter in every way, and closes an env at that time; run as `leaving.py CLASS`.

For each `close` that returned, the program prints how it was called, and its duration in seconds.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from every_class import make

NAME = sys.argv[1]


def begun() -> Any:
    env = make(NAME)
    env.reset()
    return env


def close(how: str, env: Any) -> None:
    # The clock is an attribute of this function, because modules may be deleted before a late call.
    begin_s = close.clock()  # type: ignore[attr-defined]
    env.close()
    close.write(f"{how}: {close.clock() - begin_s:.3f}\n")  # type: ignore[attr-defined]
    close.flush()  # type: ignore[attr-defined]


close.clock, close.write = time.monotonic, sys.stdout.write  # type: ignore[attr-defined]
close.flush = sys.stdout.flush  # type: ignore[attr-defined]


class Closes:
    """Closes an env when this object is deleted."""

    def __init__(self, how: str, env: Any) -> None:
        self.how, self.env = how, env

    def __del__(self, close: Any = close) -> None:
        close(self.how, self.env)


class Makes:
    """Makes an env when this object is deleted."""

    def __del__(self, make: Any = make, write: Any = sys.stdout.write) -> None:
        try:
            make(NAME).reset()
        except Exception as error:
            write(f"made: {type(error).__name__}\n")


def generator(how: str, env: Any) -> Iterator[None]:
    try:
        yield
    finally:
        close(how, env)


def close_when_main_ends(env: Any) -> None:
    threading.main_thread().join()
    close("thread", env)


if __name__ == "__main__":
    shared = begun()
    deleted, deleted_in_cycle = Closes("__del__", shared), Closes("__del__ in a cycle", begun())
    deleted_in_cycle.itself = deleted_in_cycle  # type: ignore[attr-defined]
    suspended = generator("generator", shared)
    next(suspended)
    closed = begun()
    close("here", closed)
    close("again", closed)
    closed_before = Closes("closed before, __del__", closed)
    suspended_with_closed = generator("closed before, generator", closed)
    next(suspended_with_closed)
    atexit.register(close, "closed before, atexit", closed)
    atexit.register(close, "atexit", begun())
    threading.Thread(target=close_when_main_ends, args=(begun(),)).start()
    makes = Makes()
