"""Pickles the user's values, and carries errors of the user's code, between trainer and worker.

Rule: values to a worker use cloudpickle, because a worker does not import the training script, in
whose `__main__` classes may be defined. Values to the trainer use plain pickle if possible, which
is 100 times faster.

An error of the user's code is sent as data from a worker, then raised in the trainer. Rule: the
user's own error must be reported. So this module never fails because the user's exception cannot be
constructed, printed or pickled.
"""

from __future__ import annotations

import pickle
import sys
import traceback
from typing import Any

from sc2pool import errors
from sc2pool.errors import SC2PoolError, UserCodeError
from sc2pool.pool.ipc.messages import Answer, Evidence, Raised

_SCRIPT_IN_CHILD = "__mp_main__"
"""The name of the script's module in a child of multiprocessing (spawn, forkserver)."""
_TO_WORKER = (
    "values for a worker process are pickled: a task's class with its attributes, functions of "
    "env_fns, options, arguments of calls"
)
_TO_TRAINER = (
    "values from a worker process are pickled: infos, results of calls, observations without a "
    "fixed layout"
)


def pickle_for_worker(value: Any) -> bytes:
    """Pickle a value for a worker; classes and functions of the script are pickled by value.

    Raises:
        Exception: the error of pickling, with a note.
    """
    return _by_value(value, _TO_WORKER)


def for_trainer(value: Any) -> bytes:
    """Pickle a value for the trainer.

    Raises:
        Exception: the error of pickling, with a note.
    """
    try:
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception:
        return _by_value(value, _TO_TRAINER)


def pickle_script_by_value() -> None:
    """Let cloudpickle pickle the script's classes and functions by value, in any process."""
    import cloudpickle  # noqa: PLC0415 - workers rarely need it

    script = sys.modules.get(_SCRIPT_IN_CHILD)
    if script is not None:  # for `__main__` cloudpickle does so by default
        cloudpickle.register_pickle_by_value(script)


def _by_value(value: Any, note: str) -> bytes:
    import cloudpickle  # noqa: PLC0415

    pickle_script_by_value()
    try:
        return bytes(cloudpickle.dumps(value))
    except Exception as error:
        error.add_note(note)
        raise


_NO_TERMINAL = (
    "breakpoint() needs a terminal, which a worker process does not have: use DummySC2VecEnv, or "
    "serial=True, in a terminal"
)
"""A message for the debugger's `BdbQuit`, which has no message of its own."""


class RemoteTraceback(Exception):
    """The traceback in a worker, shown as the cause of an exception from there."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def of_the_user(error: BaseException) -> BaseException:
    """The error that the user's code raised; undoes Python's conversion of StopIteration."""
    cause = error.__cause__
    if isinstance(cause, StopIteration) and text_of(error) == "coroutine raised StopIteration":
        return cause
    return error


def text_of(error: BaseException) -> str:
    """The exception's message, even if its `__str__` raises."""
    try:
        return str(error)
    except Exception as broken:
        return f"<no message: its __str__ raised {type(broken).__name__}>"


def trace_of(error: BaseException) -> str:
    """The exception's formatted traceback, even if the exception cannot be formatted."""
    try:
        return "".join(traceback.format_exception(error))
    except Exception:
        frames = "".join(traceback.format_tb(error.__traceback__))
        return f"{frames}{type(error).__name__}: {text_of(error)}\n"


def describe(error: BaseException, phase: str, evidence: Evidence | None = None) -> Raised:
    """An exception as data, with its pickle if unpickling works here."""
    at_terminal = sys.stdin is not None and sys.stdin.isatty()  # possible in a serial pool
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
    """The exception object, or None if it could not be pickled."""
    if raised.payload is None:
        return None
    try:
        error = pickle.loads(raised.payload)
    except Exception:
        return None
    return error if isinstance(error, BaseException) else None


def to_exception(raised: Raised, where: str, fault_report: str | None) -> SC2PoolError:
    """The error that ends a pool: one of this package's that names the env, or `UserCodeError`."""
    error = original(raised)
    ours: SC2PoolError
    if isinstance(error, SC2PoolError) and not isinstance(error, UserCodeError):
        # A subclass of the user may take other arguments than a message, so use our base class.
        kind = next(kind for kind in type(error).__mro__ if kind.__module__ == errors.__name__)
        ours = kind(f"{where}, {raised.phase}: {text_of(error)}")
    else:
        ours = UserCodeError(
            f"{where}: the user's code raised while {raised.phase}: {raised.summary}\n"
            f"--- traceback ---\n{raised.evidence.traceback}"
        )
    if fault_report is not None:
        ours.add_note(f"The fault report is in {fault_report}")
    ours.__cause__ = error
    return ours


def to_result(answer: Answer) -> Any:
    """Return the result of a call, or raise its exception, of the same type if possible."""
    if answer.raised is None:
        assert answer.payload is not None
        return pickle.loads(answer.payload)
    error = original(answer.raised)
    if isinstance(error, Exception):
        raise error from RemoteTraceback(answer.raised.evidence.traceback)
    raise UserCodeError(answer.raised.summary) from RemoteTraceback(
        answer.raised.evidence.traceback
    )
