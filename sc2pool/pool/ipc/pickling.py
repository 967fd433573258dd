"""How values of the user travel between trainer and worker.

Rule: to a worker, cloudpickle, because classes of the training script live in its `__main__`,
which a worker does not import; back, plain pickle where it can (100 times faster).
"""

from __future__ import annotations

import pickle
import sys
from typing import Any

_SCRIPT_IN_CHILD = "__mp_main__"
"""The script's module in a child that multiprocessing has spawned (spawn, forkserver)."""
_TO_WORKER = (
    "what goes to a worker process is pickled: a task's class with its attributes, functions of "
    "env_fns, options, arguments of calls"
)
_TO_TRAINER = (
    "what a worker process sends is pickled: infos, results of calls, observations without a fixed "
    "layout"
)


def for_worker(value: Any) -> bytes:
    """Pickle something of the trainer's; what the script defines by value.

    Raises:
        Exception: what pickling it raised, with a note.
    """
    return _by_value(value, _TO_WORKER)


def for_trainer(value: Any) -> bytes:
    """Pickle something of a worker's.

    Raises:
        Exception: as `for_worker`.
    """
    try:
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception:
        return _by_value(value, _TO_TRAINER)


def pickle_script_by_value() -> None:
    """Let cloudpickle pickle by value what the training script defines, in any process."""
    import cloudpickle  # noqa: PLC0415 - workers rarely need it

    script = sys.modules.get(_SCRIPT_IN_CHILD)
    if script is not None:  # of `__main__` cloudpickle knows by itself
        cloudpickle.register_pickle_by_value(script)


def _by_value(value: Any, note: str) -> bytes:
    import cloudpickle  # noqa: PLC0415

    pickle_script_by_value()
    try:
        return bytes(cloudpickle.dumps(value))
    except Exception as error:
        error.add_note(note)
        raise
