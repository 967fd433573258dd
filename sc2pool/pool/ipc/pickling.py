"""How values of the user travel between trainer and worker.

Rule: to a worker, cloudpickle, because classes of the training script live in its `__main__`,
which a worker does not import; back, plain pickle where it can (100 times faster).
"""

from __future__ import annotations

import pickle
from typing import Any


def for_worker(value: Any) -> bytes:
    """Pickle something of the trainer's."""
    import cloudpickle  # noqa: PLC0415 - workers rarely need it

    return bytes(cloudpickle.dumps(value))


def for_trainer(value: Any) -> bytes:
    """Pickle something of a worker's."""
    try:
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception:
        return for_worker(value)
