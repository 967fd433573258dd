"""Errors of the user's code: as data on the way from a worker, then as exceptions of the trainer.

Rule: the user's own error is what is raised: nothing here fails because of the way in which the
user's exception is made, shown or pickled.
"""

from __future__ import annotations

import pickle
import sys
import traceback
from typing import Any

from sc2pool import errors
from sc2pool.errors import SC2PoolError, UserCodeError
from sc2pool.pool.ipc.messages import Answer, Evidence, Raised
from sc2pool.pool.ipc.pickling import for_trainer

_NO_TERMINAL = (
    "breakpoint() needs a terminal, which a worker process does not have: use DummySC2VecEnv, or "
    "serial=True, in a terminal"
)
"""The message of the debugger's error, which has none of its own."""


class RemoteTraceback(Exception):
    """Shown as the cause of an exception that came from a worker."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def of_the_user(error: BaseException) -> BaseException:
    """The error as the user's code raised it: a coroutine makes a StopIteration a RuntimeError."""
    cause = error.__cause__
    if isinstance(cause, StopIteration) and text_of(error) == "coroutine raised StopIteration":
        return cause
    return error


def text_of(error: BaseException) -> str:
    """The exception's message, also if its `__str__` raises."""
    try:
        return str(error)
    except Exception as broken:
        return f"<no message: its __str__ raised {type(broken).__name__}>"


def trace_of(error: BaseException) -> str:
    """The exception's traceback, also if the exception cannot be shown."""
    try:
        return "".join(traceback.format_exception(error))
    except Exception:
        frames = "".join(traceback.format_tb(error.__traceback__))
        return f"{frames}{type(error).__name__}: {text_of(error)}\n"


def describe(error: BaseException, phase: str, evidence: Evidence | None = None) -> Raised:
    """An exception as data; its pickle only where unpickling it is known to work."""
    at_terminal = sys.stdin is not None and sys.stdin.isatty()  # a serial pool may be at one
    if type(error).__name__ == "BdbQuit" and not error.args and not at_terminal:
        error.args = (_NO_TERMINAL,)
    payload: bytes | None
    try:
        payload = for_trainer(error)
        pickle.loads(payload)
    except Exception:
        payload = None
    if evidence is None:
        evidence = Evidence(traceback=trace_of(error))
    return Raised(payload, f"{type(error).__name__}: {text_of(error)}", phase, evidence)


def original(raised: Raised) -> BaseException | None:
    """The exception object itself, if it could be pickled."""
    if raised.payload is None:
        return None
    try:
        error = pickle.loads(raised.payload)
    except Exception:
        return None
    return error if isinstance(error, BaseException) else None


def to_exception(raised: Raised, where: str, fault_report: str | None) -> SC2PoolError:
    """The exception that ends a pool: an error of ours that names the env, else `UserCodeError`."""
    error = original(raised)
    ours: SC2PoolError
    if isinstance(error, SC2PoolError) and not isinstance(error, UserCodeError):
        # A class of the user's, below one of ours, may take other arguments than a message.
        kind = next(kind for kind in type(error).__mro__ if kind.__module__ == errors.__name__)
        ours = kind(f"{where}, {raised.phase}: {text_of(error)}")
    else:
        ours = UserCodeError(
            f"{where}: the user's code raised while {raised.phase}: {raised.summary}\n"
            f"--- traceback ---\n{raised.evidence.traceback}"
        )
    if fault_report is not None:
        ours.add_note(f"What is known of it was kept in {fault_report}")
    ours.__cause__ = error
    return ours


def to_result(answer: Answer) -> Any:
    """The result of a call, or its exception raised here, of the same type where possible."""
    if answer.raised is None:
        assert answer.payload is not None
        return pickle.loads(answer.payload)
    error = original(answer.raised)
    if isinstance(error, Exception):
        raise error from RemoteTraceback(answer.raised.evidence.traceback)
    raise UserCodeError(answer.raised.summary) from RemoteTraceback(
        answer.raised.evidence.traceback
    )
