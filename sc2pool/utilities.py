"""Helpers that have nothing to do with games, for programs that use `sc2pool.integration`.

The helpers read and write files safely, show foreign texts, name missing packages, and start child
processes that end with this process. The page "Integration" describes each name. The module that
defines a name is imported on the first use of the name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from sc2pool.deadline import Deadline as Deadline
    from sc2pool.envs.shared_keywords import whole_number as whole_number
    from sc2pool.foreign import (
        REFUSED_PATH as REFUSED_PATH,
        Archive as Archive,
        check_levels as check_levels,
        open_regular as open_regular,
        printable as printable,
        read_json as read_json,
        read_table as read_table,
        read_yaml as read_yaml,
        shown as shown,
        why_not_ours as why_not_ours,
    )
    from sc2pool.optional import (
        how_to_install as how_to_install,
        needed_for as needed_for,
        require as require,
    )
    from sc2pool.platform import LINUX as LINUX, SYSTEM as SYSTEM, WINDOWS as WINDOWS
    from sc2pool.pool.child_process import ChildProcess as ChildProcess, answer as answer
    from sc2pool.pool.ipc import (
        pickle_for_worker as pickle_for_worker,
        pickle_script_by_value as pickle_script_by_value,
    )
    from sc2pool.pool.machine import available_bytes as available_bytes
    from sc2pool.pool.queues.layout import Array as Array
    from sc2pool.pool.report.pages import LoopbackServer as LoopbackServer
    from sc2pool.processes.filelock import (
        reserve as reserve,
        unlock_and_remove as unlock_and_remove,
    )
    from sc2pool.processes.with_parent import become_follower as become_follower
    from sc2pool.processes.spawn import run_python as run_python
    from sc2pool.processes.tree import (
        descendants as descendants,
        usable_cores as usable_cores,
        waited_s as waited_s,
    )
    from sc2pool.processes.windows import closing_breaks as closing_breaks
    from sc2pool.replacing import (
        new_file as new_file,
        new_folder as new_folder,
        remove_unfinished as remove_unfinished,
        replacing as replacing,
    )
    from sc2pool.shell import called as called, quoted as quoted


_NAMES = {
    "sc2pool.deadline": "Deadline",
    "sc2pool.envs.shared_keywords": "whole_number",
    "sc2pool.foreign": (
        "REFUSED_PATH Archive check_levels open_regular printable read_json read_table read_yaml "
        "shown why_not_ours"
    ),
    "sc2pool.optional": "how_to_install needed_for require",
    "sc2pool.platform": "LINUX SYSTEM WINDOWS",
    "sc2pool.pool.child_process": "ChildProcess answer",
    "sc2pool.pool.ipc": "pickle_for_worker pickle_script_by_value",
    "sc2pool.pool.machine": "available_bytes",
    "sc2pool.pool.queues.layout": "Array",
    "sc2pool.pool.report.pages": "LoopbackServer",
    "sc2pool.processes.filelock": "reserve unlock_and_remove",
    "sc2pool.processes.with_parent": "become_follower",
    "sc2pool.processes.spawn": "run_python",
    "sc2pool.processes.tree": "descendants usable_cores waited_s",
    "sc2pool.processes.windows": "closing_breaks",
    "sc2pool.replacing": "new_file new_folder remove_unfinished replacing",
    "sc2pool.shell": "called quoted",
}
"""For each defining module, the names that this module exports from it."""
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
