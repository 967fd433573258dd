"""A record has one writer, and a property changes nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import sc2pool

PACKAGE = Path(sc2pool.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
WRITERS = {
    "seat": "pool/instances/seats.py",
    "spare": "pool/instances/seats.py",
    "instance": "pool/instances/instance.py",
}
"""By the name under which a record is held: the file that changes it."""


def assigned(tree: ast.AST) -> Iterator[ast.Attribute]:
    """The attributes that are assigned to."""
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            yield from (part for part in parts if isinstance(part, ast.Attribute))


def changed_records(source: str) -> list[str]:
    """The attributes of records that a file changes: `seat.fault`, `step.seat.hold`."""
    return [
        ast.unparse(one)
        for one in assigned(ast.parse(source))
        if ast.unparse(one.value).rpartition(".")[2] in WRITERS
    ]


def changing_properties(source: str) -> list[str]:
    """The properties that assign to an attribute."""
    return [
        function.name
        for function in ast.walk(ast.parse(source))
        if isinstance(function, ast.FunctionDef)
        and any(ast.unparse(decorator) == "property" for decorator in function.decorator_list)
        and any(assigned(function))
    ]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(PACKAGE).as_posix())
def test_only_its_own_file_changes_a_record(file: Path) -> None:
    inside = file.relative_to(PACKAGE).as_posix()
    if inside not in WRITERS.values():
        assert changed_records(file.read_text()) == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(PACKAGE).as_posix())
def test_a_property_changes_nothing(file: Path) -> None:
    assert changing_properties(file.read_text()) == []


def test_violations_of_these_rules_are_found() -> None:
    assert changed_records("step.seat.fault, x = None, 1\ninstance.pauses += 1") == [
        "step.seat.fault",
        "instance.pauses",
    ]
    source = "class A:\n    @property\n    def a(self):\n        self._b = 1\n        return 2"
    assert changing_properties(source) == ["a"]
