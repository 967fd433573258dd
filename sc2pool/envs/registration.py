"""Registers the built-in tasks as `sc2pool/NAME-v0`, for gymnasium's `make` and `make_vec`.

Since version 1.0, gymnasium loads no plugins. So `import sc2pool` registers the tasks. For an id
with a prefix, `gymnasium.make("sc2pool:sc2pool/MoveToBeacon-v0")`, gymnasium itself imports
sc2pool. Rules: `import sc2pool` does not import gymnasium, because that import is slow, and would
delay the call that makes a worker end with its trainer. If gymnasium is imported after sc2pool,
that import registers the tasks. Importing this module imports nothing else of sc2pool.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_REGISTRY = "gymnasium.envs.registration"


def register_with_gymnasium() -> None:
    """Register every built-in task, now or as soon as gymnasium is imported."""
    if _REGISTRY in sys.modules:
        _register(sys.modules[_REGISTRY])
    else:
        sys.meta_path.insert(0, _Finder())


def _register(registration: ModuleType) -> None:
    from sc2pool.tasks.registry import TASK_PLACES  # noqa: PLC0415 - not by `import sc2pool`

    for name in TASK_PLACES:
        env_id = f"sc2pool/{name}-v0"
        if env_id not in registration.registry:
            registration.register(
                id=env_id,
                entry_point="sc2pool.envs.gym:SC2GymEnv",
                vector_entry_point="sc2pool.envs.vector:SC2VectorEnv",
                kwargs={"task": name},
            )


class _Finder:
    """An import finder that registers the tasks when gymnasium's registry is imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname != _REGISTRY:
            return None
        from importlib.util import find_spec  # noqa: PLC0415

        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]  # it has a loader's methods
        return spec


class _Loader:
    """Loads gymnasium's registry with the registry's own loader, then registers the tasks."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        _register(module)
