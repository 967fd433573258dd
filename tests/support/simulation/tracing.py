"""Interrupts at any line of the pool's code and after any call, like Ctrl-C in a notebook.

No interrupt comes in the code of the simulated machine, or in the pool's code while a worker uses
its end of a queue pair. No interrupt comes at the line of a `with` statement either.
Python checks for signals only when functions begin and after calls. So no signal comes between the
end of a `with` block and the release of its lock, but a trace function is called at that moment.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from inspect import CO_GENERATOR
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import sc2pool.pool
from tests.support.simulation.world import DO, World

_SHIELDED = frozenset({DO, World.advance.__code__, World.apply.__code__})
INSTANTS = frozenset({"line", "return"})
"""Interrupts come before a line, or after a call; an interrupt after a call may lose the result."""
POOL = str(Path(sc2pool.pool.__file__).parent)


@cache
def _is_with(code: CodeType, line: int) -> bool:
    return linecache.getline(code.co_filename, line).lstrip().startswith("with ")


@contextmanager
def interrupt_at(lines: int, world: World) -> Iterator[None]:
    """Raise KeyboardInterrupt at this instant in the pool's code, counted from 1; 0 means never."""
    if not lines:
        yield
        return
    left = lines
    shielded = 0

    def in_frame(frame: FrameType, event: str, __: Any) -> Any:
        nonlocal left
        if event in INSTANTS and not shielded and not _is_with(frame.f_code, frame.f_lineno):
            left -= 1
            if left == 0:
                world.interrupts += 1
                raise KeyboardInterrupt
        return in_frame

    def in_shield(_: FrameType, event: str, __: Any) -> Any:
        nonlocal shielded
        if event == "return":
            shielded -= 1
        return in_shield

    def on_call(frame: FrameType, _: str, __: Any) -> Any:
        nonlocal shielded
        code = frame.f_code
        if code in _SHIELDED:
            shielded += 1
            return in_shield
        if code.co_flags & CO_GENERATOR:
            return None  # an error in a generator that is being closed is only printed
        if left > 0 and not shielded and code.co_filename.startswith(POOL):
            return in_frame
        return None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        yield
    finally:
        sys.settrace(before)
