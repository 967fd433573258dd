"""Pickles values of the user for the trip between trainer and worker.

Rule: values to a worker use cloudpickle, because a worker does not import the training script, in
whose `__main__` classes may be defined. Values to the trainer use plain pickle if possible, which
is 100 times faster.
"""

from __future__ import annotations

import pickle
import sys
from typing import Any

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


def for_worker(value: Any) -> bytes:
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
