"""Rules of the package's source and of its tests.

A record has one writer, and a property or a predicate changes nothing. Only one module asks which
operating system runs, so that support of another system is added in this module. The wall clock may
jump, so no code that waits or measures reads this clock. No wait lasts for ever: a call without a
limit of its own is listed here, with the event that ends it. `tests/unit/room/test_x.py` tests the
module or folder `x` in `sc2pool/room` or below it. A file that tests something else is listed in
NOT_ONE_MODULE, with the reason. A test that asserts an upper bound on measured time has the mark
`timing`, so that a busy machine can run `pytest -m "not timing"`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import sc2pool
import sc2standin

# ---- a record has one writer, and a property or a predicate changes nothing ----------------------


PACKAGE = Path(sc2pool.__file__).parent
SOURCES = {
    file.relative_to(PACKAGE).as_posix(): file.read_text() for file in sorted(PACKAGE.rglob("*.py"))
}
WRITERS = {
    "seat": "pool/instances/seats.py",
    "spare": "pool/instances/seats.py",
    "instance": "pool/instances/instance.py",
}
"""For each attribute that holds a record: the file that may change the record."""
PREDICATES = ("is_", "are_", "has_", "can_", "may_")
"""The prefixes of the names of predicates."""


def assigned(tree: ast.AST) -> Iterator[ast.Attribute]:
    """The attributes to which the code assigns a value."""
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            yield from (part for part in parts if isinstance(part, ast.Attribute))


def changed_records(source: str) -> list[str]:
    """The records' attributes to which a source assigns, such as `seat.fault`."""
    return [
        ast.unparse(one)
        for one in assigned(ast.parse(source))
        if ast.unparse(one.value).rpartition(".")[2] in WRITERS
    ]


def changing_predicates(source: str) -> list[str]:
    """The properties, and the functions named like predicates, that assign to an attribute."""
    return [
        function.name
        for function in ast.walk(ast.parse(source))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        and (
            function.name.lstrip("_").startswith(PREDICATES)
            or any(ast.unparse(decorator) == "property" for decorator in function.decorator_list)
        )
        and any(assigned(function))
    ]


def test_only_its_own_file_changes_a_record() -> None:
    wrong = [
        f"{name} changes {record}"
        for name, source in SOURCES.items()
        if name not in WRITERS.values()
        for record in changed_records(source)
    ]
    assert wrong == []


def test_a_property_or_a_predicate_changes_nothing() -> None:
    wrong = [
        f"{name}, {function}"
        for name, source in SOURCES.items()
        for function in changing_predicates(source)
    ]
    assert wrong == []


def test_violations_of_these_rules_are_found() -> None:
    assert changed_records("step.seat.fault, x = None, 1\ninstance.pauses += 1") == [
        "step.seat.fault",
        "instance.pauses",
    ]
    source = "class A:\n    @property\n    def a(self):\n        self._b = 1\n        return 2"
    assert changing_predicates(source) == ["a"]
    assert changing_predicates("def _may_go(self):\n    self._gone += 1") == ["_may_go"]


# ---- one module asks for the platform ------------------------------------------------------------


ASKS = {("sys", "platform"), ("os", "name"), ("platform", "system")}


def asks_for_the_system(source: str) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr) in ASKS
        for node in ast.walk(ast.parse(source))
    )


def test_no_other_module_asks():
    asking = [name for name, source in SOURCES.items() if asks_for_the_system(source)]
    assert asking == ["platform.py"]


# ---- nothing that waits or measures looks at the wall clock --------------------------------------


BANNED = {
    "time": {"time", "time_ns", "ctime", "localtime", "gmtime", "strftime", "asctime", "mktime"},
    "datetime": {"now", "utcnow", "today", "fromtimestamp"},
    "date": {"today", "fromtimestamp"},
}
WALL_CLOCKS = {
    # A dict from a file and its function of the wall clock to the purpose of the call.
    ("pool/report/fault_reports.py", "time.strftime"): "a fault report's name, for people",
    ("pool/report/replays.py", "time.strftime"): "a replay's name, for people",
    ("doctor/diagnosis.py", "date.today"): "the day of a measurement, for people",
    ("cli/training/options.py", "time.strftime"): "a run folder's name, for people",
    ("cli/training/progress.py", "time.time"): "when a figure was logged, as TensorBoard shows it",
    ("pool/report/live_files.py", "time.time"): "the age of a file, by the clock of its times",
}


def looks_at_the_wall_clock(source: str) -> set[str]:
    """The functions of the wall clock that a file uses, in the form `module.function`."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            owner = node.value
            name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
            if node.attr in BANNED.get(name, ()):
                found.add(f"{name}.{node.attr}")
        elif isinstance(node, ast.ImportFrom) and node.module in BANNED:
            found |= {
                f"{node.module}.{alias.name}"
                for alias in node.names
                if alias.name in BANNED[node.module]
            }
    return found


def test_only_what_is_allowed_reads_the_wall_clock():
    """Each exception in `WALL_CLOCKS` must also still be needed."""
    used = {
        (name, clock)
        for name, source in SOURCES.items()
        for clock in looks_at_the_wall_clock(source)
    }
    assert used == set(WALL_CLOCKS)
    standin = Path(sc2standin.__file__).parent.rglob("*.py")
    assert not [file for file in standin if looks_at_the_wall_clock(file.read_text())]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import time\nend = time.time() + 5", {"time.time"}),
        ("from time import time, monotonic", {"time.time"}),
        ("import datetime\ndatetime.datetime.now()", {"datetime.now"}),
        ("from datetime import date\ndate.today()", {"date.today"}),
        ("import time\ntime.monotonic(), time.perf_counter(), time.sleep(1)", set()),
    ],
)
def test_the_lint_itself(source, found):
    assert looks_at_the_wall_clock(source) == found


# ---- each wait has an end ------------------------------------------------------------------------


WITHOUT_ARGUMENTS = {"get", "wait", "join", "result", "acquire", "communicate", "accept"}
"""Methods of these names wait for ever without arguments; with arguments, most do not wait."""
ALWAYS = {
    "ray.get",
    "ray.wait",
    "select.select",
    "poll.poll",
    "asyncio.wait",
    "asyncio.gather",
    "Socket.recv",
}
"""Functions that wait for ever unless they get a `timeout`, or their socket has one."""

KILLED = "its process has been killed"
DONE = "the task is done: its result is read"
BY_TRAINER = "in a worker: the trainer's deadlines end it with its worker"
BY_GAME = "on a game: each request has a deadline, and the game's end ends it"
BY_REQUESTS = "each request and launch in it has a limit"
ITS_THREAD = "in a thread that has nothing else to do and ends with the process"
WAITS = {
    ("doctor/ends.py", "asyncio.gather"): "its tasks are cancelled",
    ("doctor/lab.py", "_came.get"): "within a time limit",
    ("doctor/lab.py", "asyncio.gather"): BY_REQUESTS,
    ("doctor/lab.py", "asyncio.wait"): "its tasks are cancelled",
    ("doctor/launches.py", "asyncio.gather"): BY_REQUESTS,
    ("doctor/machine.py", "PortLease.acquire"): "no lock: it takes what is free, or raises",
    ("game/match.py", "PortLease.acquire"): "no lock: it takes what is free, or raises",
    ("game/program/launch.py", "opening.result"): DONE,
    ("game/program/launch.py", "asyncio.wait"): "a cancelled task, whose socket is closed",
    ("game/match.py", "asyncio.wait"): BY_GAME,
    ("game/match.py", "task.result"): DONE,
    ("pool/ipc.py", "Socket.recv"): "there is something to read, or it does not block",
    ("pool/runtime.py", "opened.result"): "what is done there is bounded by itself",
    ("pool/report/pages.py", "_thread.join"): "its server was shut down",
    ("pool/report/pages.py", "ending.join"): "it shuts the server down, twice a second at least",
    ("pool/report/pages.py", "_child.wait"): KILLED,
    ("pool/runtime.py", "ending.result"): "what `close` does is bounded, each part by itself",
    ("pool/serial.py", "asyncio.gather"): "the loop is run for a limited time",
    ("pool/worker/worker_end.py", "_block.wait"): BY_TRAINER,
    ("pool/worker/hosted_instance.py", "asyncio.wait"): BY_TRAINER,
    ("pool/worker/hosted_instance.py", "task.result"): DONE,
    ("pool/worker/worker.py", "_ordered.wait"): BY_TRAINER,
    ("processes/guard.py", "_process.wait"): KILLED,
    ("processes/spawn.py", "child.wait"): f"{KILLED}, or: {ITS_THREAD}",
    ("processes/spawn.py", "_work.get"): ITS_THREAD,
    ("processes/spawn.py", "submit.result"): "what is done there is bounded by itself",
    ("processes/with_parent.py", "poll.poll"): ITS_THREAD,
    ("ray/cluster.py", "Socket.recv"): "the connection has a timeout",
    ("realtime/acting.py", "_thread.join"): "it ends after its step, which has a deadline",
    ("pool/child_process.py", "_process.wait"): KILLED,
    ("realtime/screen/program.py", "_server.wait"): KILLED,
    ("realtime/screen/program.py", "_process.wait"): KILLED,
    ("players/bot_sides.py", "asyncio.wait"): BY_TRAINER,
    ("players/bot_sides.py", "turn.result"): DONE,
    ("players/match_episode.py", "_running.result"): DONE,
    ("players/match_episode.py", "_turn.acquire"): BY_TRAINER,
    ("players/match_episode.py", "task.result"): "no wait: how the game went for a player",
}


def name_of(node: ast.expr) -> str:
    """The last name of an expression, such as `_thread` for `self._thread` and for `_thread`."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case ast.Call(func=function):
            return name_of(function)
    return "?"


def waits_in(source: str) -> set[str]:
    """The calls in a file that wait without a limit, in the form `owner.method`."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        owner, method = name_of(node.func.value), node.func.attr
        if "socket" in owner or owner == "connection":
            owner = "Socket"
        limited = any("timeout" in (keyword.arg or "") for keyword in node.keywords) or (
            method == "select" and len(node.args) == 4
        )
        limited |= method == "poll" and len(node.args) == 1
        waits = f"{owner}.{method}" in ALWAYS or (method in WITHOUT_ARGUMENTS and not node.args)
        if waits and not limited:
            found.add(f"{owner}.{method}")
    return found


def test_what_is_found():
    source = """
thread.join(); "".join(names); queue.get(); queue.get(timeout=1.0); mapping.get("key")
ray.get(reference); ray.get(reference, timeout=3); self._socket.recv(100); submit(work).result()
select.select(ends, [], []); select.select(ends, [], [], 1.0); process.wait(5.0)
poll.poll(); poll.poll(0)
"""
    assert waits_in(source) == {
        "thread.join",
        "queue.get",
        "ray.get",
        "Socket.recv",
        "submit.result",
        "select.select",
        "poll.poll",
    }


def test_every_wait_has_an_end():
    """Each exception in `WAITS` must also still be needed."""
    found = {(name, wait) for name, source in SOURCES.items() for wait in waits_in(source)}
    assert found == set(WAITS)


# ---- unit tests mirror the package, tests that bound time are marked -----------------------------


TESTS = Path(__file__).parents[1]
UNIT = TESTS / "unit"
NOT_ONE_MODULE = {
    "test_imports.py": "imports of the whole package",
    "test_structure.py": "rules of the whole package and of its tests",
    "test_tiers.py": "the options --tier and --game of tests/conftest.py",
    "pool/test_rows.py": "envs of several rows, through the whole pool",
    "tasks/test_real_messages.py": "recorded messages, through everything that reads messages",
}
CLOCKS = {"monotonic", "perf_counter", "thread_time", "process_time"}


def is_a_modules(test: Path) -> bool:
    """True if a test file has the name of a module or folder in or below the mirrored folder."""
    room = PACKAGE / test.relative_to(UNIT).parent
    name = test.stem.removeprefix("test_")
    return any(path.is_dir() for path in room.rglob(name)) or any(room.rglob(f"{name}.py"))


def test_unit_tests_mirror_the_package() -> None:
    others = {
        test.relative_to(UNIT).as_posix()
        for test in UNIT.rglob("test_*.py")
        if not is_a_modules(test)
    }
    assert others == set(NOT_ONE_MODULE)


def bounds_time(function: ast.AST) -> bool:
    """True if a function asserts that a clock shows less than something."""
    return any(
        isinstance(part, ast.Attribute) and part.attr in CLOCKS
        for statement in ast.walk(function)
        if isinstance(statement, ast.Assert)
        for compared in ast.walk(statement.test)
        if isinstance(compared, ast.Compare)
        and any(isinstance(operator, ast.Lt | ast.LtE | ast.Eq) for operator in compared.ops)
        for part in ast.walk(compared)
    )


def is_marked(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("mark.timing" in ast.unparse(decorator) for decorator in function.decorator_list)


def unmarked(source: str) -> Iterator[str]:
    """The tests of a file that bound a time, directly or in a helper, but have no mark."""
    tree = ast.parse(source)
    if any(
        "pytestmark" in ast.unparse(node) and "mark.timing" in ast.unparse(node)
        for node in tree.body
        if isinstance(node, ast.Assign)
    ):
        return
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    helpers = {one.name for one in functions if bounds_time(one)}
    for function in functions:
        if not function.name.startswith("test_") or is_marked(function):
            continue
        called = {part.id for part in ast.walk(function) if isinstance(part, ast.Name)}
        if bounds_time(function) or called & helpers:
            yield function.name


def test_upper_bounds_on_time_are_marked() -> None:
    wrong = [
        f"{test.relative_to(TESTS)}, {function}"
        for test in sorted(TESTS.rglob("test_*.py"))
        for function in unmarked(test.read_text())
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def test_a():\n    assert time.monotonic() - began < 5", ["test_a"]),
        ("async def test_a():\n    assert time.monotonic() < 5", ["test_a"]),
        ("def test_a():\n    assert time.monotonic() - began >= 5", []),
        ("@pytest.mark.timing\ndef test_a():\n    assert time.monotonic() < 5", []),
        (
            "def quick():\n    assert time.perf_counter() < 5\ndef test_a():\n    quick()",
            ["test_a"],
        ),
        ("pytestmark = pytest.mark.timing\ndef test_a():\n    assert time.monotonic() < 5", []),
    ],
)
def test_unmarked_tests_are_found(source: str, found: list[str]) -> None:
    assert list(unmarked(source)) == found
