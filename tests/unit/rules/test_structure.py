"""Rules of the tests: unit tests mirror the package, tests that a slow machine may fail are marked.

- `tests/unit/room/test_x.py` tests the module or folder `x` in `sc2pool/room` or below it. A file
  that tests something else is in NOT_ONE_MODULE, with the reason, or one of these rules.
- A test that asserts an upper bound on measured time carries `@pytest.mark.timing`:
  `pytest -m "not timing"` is the suite for a machine that does other work meanwhile.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import sc2pool

PACKAGE = Path(sc2pool.__file__).parent
TESTS = Path(__file__).parents[2]
UNIT = TESTS / "unit"
RULES = UNIT / "rules"
"""Rules of the whole package and of its tests."""
NOT_ONE_MODULE = {
    "test_bad_input.py": "wrong arguments of the env classes",
    "test_tiers.py": "the options --tier and --game of tests/conftest.py",
    "protocol/test_recorded.py": "recorded observations, through every reader of units",
    "pool/test_rows.py": "envs of several rows, through the whole pool",
    "tasks/minigames/test_spaces.py": "one property of every mini-game",
    "tasks/test_real_messages.py": "recorded messages, through everything that reads messages",
}
CLOCKS = {"monotonic", "perf_counter", "thread_time", "process_time"}


def is_a_modules(test: Path) -> bool:
    """True if a test file has the name of a module or folder in or below its place."""
    room = PACKAGE / test.relative_to(UNIT).parent
    name = test.stem.removeprefix("test_")
    return any(path.is_dir() for path in room.rglob(name)) or any(room.rglob(f"{name}.py"))


def test_unit_tests_mirror_the_package() -> None:
    others = {
        test.relative_to(UNIT).as_posix()
        for test in UNIT.rglob("test_*.py")
        if RULES not in test.parents and not is_a_modules(test)
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
    """The tests of a file that bound time, by themselves or in a helper of the file, unmarked."""
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
