"""A record has one writer, and a property or a predicate changes nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import sc2pool

PACKAGE = Path(sc2pool.__file__).parent
SOURCES = {
    file.relative_to(PACKAGE).as_posix(): file.read_text() for file in sorted(PACKAGE.rglob("*.py"))
}
WRITERS = {
    "seat": "pool/instances/seats.py",
    "spare": "pool/instances/seats.py",
    "instance": "pool/instances/instance.py",
}
"""By the name under which a record is held: the file that changes it."""
PREDICATES = ("is_", "are_", "has_", "can_", "may_")
"""How the names of predicates begin."""


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
