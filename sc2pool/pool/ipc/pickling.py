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


def for_worker(value: Any) -> bytes:
    """Pickle something of the trainer's; what the script defines by value."""
    import cloudpickle  # noqa: PLC0415 - workers rarely need it

    script = sys.modules.get(_SCRIPT_IN_CHILD)
    if script is not None:  # of `__main__` cloudpickle knows by itself
        cloudpickle.register_pickle_by_value(script)
    return bytes(cloudpickle.dumps(value))


def for_trainer(value: Any) -> bytes:
    """Pickle something of a worker's."""
    try:
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception:
        return for_worker(value)
