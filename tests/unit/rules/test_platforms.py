"""One module knows the operating system, so that another one can be added there."""

from __future__ import annotations

import ast
from pathlib import Path

import sc2pool

PACKAGE = Path(sc2pool.__file__).parent
ASKS = {("sys", "platform"), ("os", "name"), ("platform", "system")}


def asks_for_the_system(file: Path) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr) in ASKS
        for node in ast.walk(ast.parse(file.read_text()))
    )


def test_no_other_module_asks():
    names = [file.relative_to(PACKAGE).as_posix() for file in sorted(PACKAGE.rglob("*.py"))]
    asking = [name for name in names if asks_for_the_system(PACKAGE / name)]
    assert asking == ["platform.py"]
