"""Tests that imports run one way, that outer folders import public names, and what loads late."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import cloudpickle
import pytest

import sc2pool
import sc2standin
from sc2pool import SubprocSC2VecEnv, integration, utilities
from sc2pool.tasks.minigames.move_to_beacon import MoveToBeacon
from tests.unit.conftest import printed_by

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers need not import this file

PACKAGE = Path(sc2pool.__file__).parent
FOUNDATIONS = set(
    "config deadline waiting errors optional platform shell replacing foreign _fast".split()
)
PUBLIC = set("config errors commands units smac replays integration utilities".split()) | {""}
MAY_IMPORT = {
    "config": {"errors", "platform"},
    "deadline": set(),
    "waiting": {"platform"},
    "errors": set(),
    "optional": {"errors", "shell"},
    "shell": {"platform"},
    "platform": set(),
    "replacing": set(),
    "foreign": {"deadline", "errors", "optional", "platform"},
    "_fast": set(),
    "protocol": FOUNDATIONS,
    "commands": {"errors"},
    "units": FOUNDATIONS | {"protocol"},
    "processes": FOUNDATIONS,
    "game": FOUNDATIONS | {"protocol", "processes"},
    "render": FOUNDATIONS | {"protocol"},
    "replays": FOUNDATIONS | {"protocol", "game", "render"},
    "tasks": FOUNDATIONS | {"protocol", "commands", "units", "processes", "game", "render"},
    "smac": PUBLIC | {"tasks", "pool"},
    "players": FOUNDATIONS
    | {"commands", "units", "protocol", "processes", "game", "render", "tasks"},
    "pool": FOUNDATIONS | {"protocol", "processes", "game", "render", "tasks", "players"},
    "envs": FOUNDATIONS
    | {"protocol", "processes", "game", "tasks", "players", "pool"}
    | {"", "integration", "utilities"},
    "doctor": FOUNDATIONS | {"commands", "protocol", "processes", "game", "tasks", "pool"},
    "integration": {"game", "tasks", "pool", "envs", "realtime", "protocol", "pretrained"},
    "utilities": FOUNDATIONS | {"processes", "pool", "envs"},
    "datasets": PUBLIC,
    "pretrained": set(),
    "realtime": FOUNDATIONS | {"protocol", "processes", "game", "tasks", "pool", "utilities"},
    "ray": PUBLIC | {"pool", "realtime"},
    "cli": PUBLIC | {"tasks", "ray", "datasets", "doctor"},
    "__main__": {"cli"},
    # Each public name is loaded from its own module when it is first used.
    "": FOUNDATIONS
    | {"commands", "units", "smac", "tasks", "pool", "envs", "datasets", "realtime", "ray"},
}
POOL_ROOMS = {
    "messages": set(),
    "ipc": {"messages"},
    "queues": {"messages", "ipc"},
    "measures": set(),
    "statistics": {"measures"},
    "report": {"messages", "ipc", "measures", "statistics"},
    "machine": {"report"},
    "watchdog": {"queues"},
    "worker": {"messages", "ipc", "queues", "report"},
    "instances": {"messages", "ipc", "queues", "statistics", "report", "machine", "watchdog"},
}
"""For each folder and some files of `pool`: the other folders and files that it may import."""
HEAVY = {
    module: tuple(places.split())
    for module, places in {
        "torch": "envs/sb3.py realtime/ cli/ tasks/opponents/models.py",
        "stable_baselines3": "envs/sb3.py envs/callbacks.py datasets/callback.py realtime/ ray/"
        " cli/",
        "minari": "datasets/",
        "h5py": "datasets/",
        "optuna": "cli/tune.py",
        "shtab": "cli/parser.py",
        "ray": "realtime/rllib.py ray/",
        "tianshou": "envs/tianshou.py",
        "pettingzoo": "envs/pettingzoo.py",
        "psutil": "processes/ game/ pool/machine.py doctor/ ray/viewer.py realtime/ cli/",
        "sc2": "tasks/bot.py tasks/opponents/policies.py players/bots.py players/bot_sides.py"
        " tasks/minigames/move_to_beacon_bot.py",
        "matplotlib": "cli/",
        "prometheus_client": "pool/report/pages.py",
        "PIL": "render/ cli/",
        "mss": "realtime/screen/",
        "Xlib": "realtime/screen/",
    }.items()
}
"""For each module that loads slowly: the places that may import it."""
OUTER_ROOMS = (
    ("cli",),
    ("ray",),
    ("datasets",),
    ("realtime/acting", "realtime/async_ppo", "realtime/async_off_policy"),
    ("smac/env",),
    ("envs/pettingzoo",),
    ("envs/tianshou",),
)
"""The parts of each outer folder ("room"). A room could be a package of its own, so it imports only
names that the documentation describes."""
FILES = sorted(PACKAGE.rglob("*.py"))
STANDIN = sorted(Path(sc2standin.__file__).parent.rglob("*.py"))


def names_imported(source: str) -> list[tuple[str, str]]:
    """What a file imports, at its top or inside a function: the modules, and the names in them."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(alias.name, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import of {node.module}"
            found += [(node.module, f"{node.module}.{alias.name}") for alias in node.names]
    return found


@cache
def imports(file: Path) -> set[str]:
    """The modules that a file imports, and the names in them."""
    return {name for names in names_imported(file.read_text()) for name in names}


def name_of(file: Path) -> str:
    """The module's name, as it is imported."""
    return ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)


def room(module: str) -> str:
    """The top-level folder or module ("room") of a module; empty for the package itself."""
    name = module.split(".")[1] if "." in module else ""
    return name if name in MAY_IMPORT else ""


def wrong_imports(file: Path) -> Iterator[str]:
    """The imports of a file that break the rules."""
    inside = file.relative_to(PACKAGE)
    own_room = room(f"sc2pool.{inside.parts[0].removesuffix('.py')}")
    allowed = MAY_IMPORT[own_room] | {own_room}
    for module in imports(file):
        of_ours = module.startswith("sc2pool.") and room(module) not in allowed
        misplaced = not str(inside).startswith(HEAVY.get(module.partition(".")[0], ("",)))
        if of_ours or misplaced:
            yield f"{inside} imports {module}"


def test_every_file_imports_only_what_its_room_may():
    assert [wrong for file in FILES for wrong in wrong_imports(file)] == []


def is_module(path: str) -> bool:
    file = PACKAGE.parent.joinpath(*path.split("."))
    return file.is_dir() or file.with_suffix(".py").exists()


@cache
def public_names() -> set[str]:
    """The names that the documentation describes; a module's name stands for all names in it."""
    found = {f"sc2pool.{name}" for name in ("__version__", *sc2pool._HOME, *sc2pool._MODULES)}
    for page in ("reference.md", "integration.md"):
        text = (PACKAGE.parent / "docs" / page).read_text()
        for path, options in re.findall(r"^::: (\S+)\n((?:    .+\n)*)", text, re.MULTILINE):
            listed = re.search(r"members: \[(.*)\]", options)
            found |= {f"{path}.{name}" for name in listed[1].split(", ")} if listed else set()
            if not is_module(path) or not (listed or "members: false" in options):
                found.add(path)
    for door in (integration, utilities):
        for name, home in door._HOMES.items():
            there = {one for one in found if one.startswith(f"{home}.")}
            if home.endswith(f".{name}") and there:  # the page describes the names of a module
                found = found - there | {f"{door.__name__}.{name}"}
    return found


def private_names(source: str, room: Sequence[str]) -> list[str]:
    """The private names of other rooms that a file imports."""
    own = tuple(f"sc2pool.{part.replace('/', '.')}." for part in room)
    return [
        name
        for module, name in names_imported(source)
        if f"{module}.".startswith("sc2pool.") and not f"{name}.".startswith(own)
        if name != "sc2pool" and not {module, name} & public_names()
    ]


def test_outer_rooms_import_public_names_only():
    wrong = [
        f"{file.relative_to(PACKAGE)} imports {name}"
        for room in OUTER_ROOMS
        for file in FILES
        if file.with_suffix("").relative_to(PACKAGE).as_posix().startswith(room)
        for name in private_names(file.read_text(), room)
    ]
    assert wrong == []


def test_private_names_are_found():
    source = """
import sc2pool
import sc2pool.foreign
from sc2pool import PoolStats, foreign
from sc2pool.cli import arguments
from sc2pool.config import Limits
from sc2pool.envs.shared_keywords import make_players
from sc2pool.integration import find_installation, live_files, make_players, task_spec
from sc2pool.pool.pool import Pool, agreed
from sc2pool.tasks.registry import resolve_task
from sc2pool.tasks.teams.smacv2 import state_names
"""
    assert private_names(source, ("cli",)) == [
        "sc2pool.foreign",
        "sc2pool.foreign",
        "sc2pool.envs.shared_keywords.make_players",
        "sc2pool.integration.task_spec",
        "sc2pool.pool.pool.agreed",
        "sc2pool.tasks.registry.resolve_task",
        "sc2pool.tasks.teams.smacv2.state_names",
    ]


@pytest.mark.parametrize("door", [integration, utilities])
def test_the_doors_have_few_names_and_describe_each(door):
    assert len(door._HOMES) <= 60
    assert [name for name in door._HOMES if f"{door.__name__}.{name}" not in public_names()] == []
    for name in door._HOMES:
        if door._HOMES[name] != "sc2pool.realtime.rllib":  # needs Ray
            assert getattr(door, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'task_spec'"):
        _ = door.task_spec


def test_the_two_programs_do_not_import_each_other():
    assert not [file for file in FILES for module in imports(file) if "sc2standin" in module]
    assert not [file for file in STANDIN for module in imports(file) if "sc2pool" in module]


def test_the_stand_in_imports_nothing_heavy():
    imported = {module.partition(".")[0] for file in STANDIN for module in imports(file)}
    assert not imported & set(HEAVY)


@pytest.mark.parametrize("own_room", POOL_ROOMS)
def test_the_rooms_of_the_pool_import_one_way(own_room):
    allowed = {"sc2pool", "sc2pool.pool"}
    allowed |= {f"sc2pool.pool.{name}" for name in POOL_ROOMS[own_room] | {own_room}}
    folder = (PACKAGE / "pool" / own_room).is_dir()
    wrong = [
        f"{file.name} imports {module}"
        for file in (PACKAGE / "pool").glob(f"{own_room}/*.py" if folder else f"{own_room}.py")
        for module in imports(file)
        if module.startswith("sc2pool.pool") and ".".join(module.split(".")[:3]) not in allowed
    ]
    assert wrong == []


def test_no_module_imports_itself_by_way_of_others():
    """`__init__` files are not checked, because extension modules are imported through them."""
    modules = {name_of(file): file for file in (*FILES, *STANDIN) if file.name != "__init__.py"}
    TopologicalSorter(
        {name: modules.keys() & imports(file) - {name} for name, file in modules.items()}
    ).prepare()


def test_import_sc2pool_is_light():
    modules = printed_by("import sys, sc2pool; dir(sc2pool); print(*sys.modules)")
    loaded = {name.partition(".")[0] for name in modules.split()}
    assert not loaded & {*HEAVY, "numpy", "gymnasium", "s2clientprotocol", "cloudpickle"}


@pytest.mark.parametrize("name", sc2pool.__all__)
def test_every_public_name_loads(name):
    assert name in dir(sc2pool)
    assert getattr(sc2pool, name).__name__.rpartition(".")[2] == name


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'SubprocVecEnv'"):
        _ = sc2pool.SubprocVecEnv


def lean_env():
    import gymnasium
    from gymnasium import spaces

    class Lean(gymnasium.Env):
        action_space = observation_space = spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            return 0, {}

        def loaded(self):
            import sys

            return set(sys.modules)

    return Lean()


class Telling(MoveToBeacon):
    def loaded(self):
        import sys

        return set(sys.modules)


@pytest.mark.parametrize("kind", ["task", "env"])
def test_a_worker_is_lean(kind, standin_dir):
    task = {"n": 1, "task": Telling, "game": standin_dir}
    with closing(SubprocSC2VecEnv(**task if kind == "task" else {"env_fns": [lean_env]})) as made:
        made.reset()
        (loaded,) = made.env_method("loaded")
    tops = {name.partition(".")[0] for name in loaded}
    assert not tops & {"torch", "stable_baselines3", "sc2", "matplotlib", "PIL", "pytest"}
    if kind == "env":
        assert not tops & {"psutil", "s2clientprotocol", "picows"}
