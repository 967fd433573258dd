"""Changes one line of the package at a time, and shows whether the tests find the change.

Usage:
    python scripts/mutate.py --count 20 --seed 1                   # Tests 20 changes.
    python scripts/mutate.py --count 20 --seed 1 --only 7 --all    # Tests only the seventh change.

Each change (mutation) is tested in a copy of the checkout with its uncommitted changes. First the
unit tests of the changed file run. Then the fast tests run, or with `--all` all tests except the
long ones. If no test finds a mutation, either the mutation leaves the program's behaviour as it
was, or the changed behaviour is untested. The same seed draws the same mutations of the same code.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("pool", "game", "envs", "tasks")
TIER_S = 3600.0
"""The time limit of a group of tests; a mutation that makes the tests hang counts as found."""
_PAIRS: tuple[tuple[type[ast.AST], type[ast.AST]], ...] = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot)),
    *((ast.In, ast.NotIn), (ast.Add, ast.Sub), (ast.And, ast.Or)),
)
SWAPPED: dict[type[ast.AST], Any] = {
    one: other() for pair in _PAIRS for one, other in (pair, pair[::-1])
} | {ast.Mult: ast.Add()}


@dataclass(frozen=True)
class Mutation:
    """A replacement of the code at one place of one file."""

    file: Path
    line: int
    start: int
    end: int
    """`start` and `end` are offsets in the line, in bytes of UTF-8."""
    replacement: str

    def applied(self, source: bytes) -> bytes:
        """The file's content with the mutation."""
        lines = source.splitlines(keepends=True)
        line = lines[self.line - 1]
        lines[self.line - 1] = line[: self.start] + self.replacement.encode() + line[self.end :]
        return b"".join(lines)


def replacements(node: ast.AST) -> Iterator[str]:
    """All pieces of code that can replace an expression or a statement."""
    match node:
        case ast.Compare(left, [operator], [right]) if type(operator) in SWAPPED:
            swapped = ast.Compare(left, [SWAPPED[type(operator)]], [right])
            yield f"({ast.unparse(swapped)})"
        case ast.BinOp(left, operator, right) if type(operator) in SWAPPED:
            swapped = ast.BinOp(left, SWAPPED[type(operator)], right)
            yield f"({ast.unparse(swapped)})"
        case ast.BoolOp(operator, values):
            yield f"({ast.unparse(ast.BoolOp(SWAPPED[type(operator)], values))})"
        case ast.UnaryOp(ast.Not(), operand):
            yield ast.unparse(operand)
        case ast.Constant(bool(value)):
            yield str(not value)
        case ast.Constant(int(value) | float(value)):
            yield repr(value + 1)
        case ast.Expr(ast.Call()):
            yield "pass"
        case ast.Return(value) if value is not None and not isinstance(value, ast.Constant):
            yield "return None"


def mutations_of(file: Path) -> list[Mutation]:
    """All mutations of single lines in the functions of a file, in the order of the lines."""
    found = []
    tree = ast.parse(file.read_bytes())
    functions = [
        one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    for statement in (part for function in functions for part in function.body):
        for node in ast.walk(statement):
            line, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
            if line is None or line != last:
                continue
            found += [
                Mutation(file, line, node.col_offset, node.end_col_offset, text)
                for text in replacements(node)
            ]
    return sorted(set(found), key=lambda one: (one.line, one.start, one.replacement))


def drawn(count: int, seed: int) -> list[Mutation]:
    """Draw this many mutations, at most one in each file."""
    files = [file for room in ROOMS for file in sorted((ROOT / "sc2pool" / room).rglob("*.py"))]
    choose = random.Random(seed)
    all_of = {file: found for file in files if (found := mutations_of(file))}
    # The probability of a file is proportional to the number of its mutations.
    weights = {file: len(found) for file, found in all_of.items()}
    chosen: list[Mutation] = []
    while len(chosen) < min(count, len(all_of)):
        file = choose.choices(list(weights), list(weights.values()))[0]
        del weights[file]
        chosen.append(choose.choice(all_of[file]))
    return chosen


def unit_tests_of(file: Path) -> list[str]:
    """The test files that are named after a file or one of the file's folders, the nearest first.

    These test files may be at any level above the file's place in tests/unit. If no such test
    exists, the folders of tests/unit that mirror the file's folders are returned, nearest first.
    """
    inside = file.relative_to(ROOT / "sc2pool").with_suffix("")
    folders = [folder for folder in inside.parents if folder.name]
    named = [
        above / f"test_{place.name}.py" for place in (inside, *folders) for above in place.parents
    ]
    for mirrors in (named, folders):
        found = [f"tests/unit/{one}" for one in mirrors if (ROOT / "tests/unit" / one).exists()]
        if found:
            return found
    return []


def fails(copy: Path, *arguments: str) -> str | None:
    """The first test that fails in the copy, or the reason why no test ran; None if all pass."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", *arguments]
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=os.environ | {"PYTHONPATH": str(copy)},
            capture_output=True,
            text=True,
            check=False,
            timeout=TIER_S,
        )
    except subprocess.TimeoutExpired:
        return f"not within {TIER_S:.0f} s"
    if done.returncode in (0, 5):  # pytest exits with 5 if it finds no tests
        return None
    told = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return told[0] if told else f"exit code {done.returncode}"


def find(copy: Path, mutation: Mutation, everything: bool) -> str | None:
    """The stage and the name of the test that finds a mutation; None if no test does."""
    tier = "all" if everything else "fast"
    in_parallel = ("-n", "4", "--dist", "loadfile", "--no-loadscope-reorder")  # as scripts/test
    stages = {"unit": unit_tests_of(mutation.file), tier: [f"--tier={tier}", *in_parallel]}
    for stage, arguments in stages.items():
        if arguments and (failed := fails(copy, *arguments)):
            return f"{stage}: {failed}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, nargs="+", help="numbers of mutations to play")
    parser.add_argument("--all", action="store_true", help="play the tests of --tier=all")
    given = parser.parse_args()
    survived = 0
    with tempfile.TemporaryDirectory(prefix="sc2pool-mutate-") as folder:
        copy = Path(folder, "sc2pool")
        ignored = (".git", ".venv", "__pycache__", "build", ".*_cache", "runs")
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*ignored))
        (copy / ".venv").symlink_to(ROOT / ".venv")
        for number, mutation in enumerate(drawn(given.count, given.seed), 1):
            if given.only and number not in given.only:
                continue
            original = mutation.file.read_bytes()
            line = original.splitlines()[mutation.line - 1].decode().strip()
            changed = mutation.applied(original)
            place = mutation.file.relative_to(ROOT)
            print(f"{number:3} {place}:{mutation.line}\n      - {line}")
            print(f"      + {changed.splitlines()[mutation.line - 1].decode().strip()}", flush=True)
            began_s = time.monotonic()
            (copy / place).write_bytes(changed)
            found = find(copy, mutation, given.all)
            (copy / place).write_bytes(original)
            survived += found is None
            print(f"      {found or 'SURVIVED'} ({time.monotonic() - began_s:.0f} s)", flush=True)
    print(f"{survived} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
