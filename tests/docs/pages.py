"""Extracts the code blocks of documentation pages, so that tests can run the blocks as programs.

`blocks(page)` returns the fenced code blocks, each with its language and its place. `program(page)`
returns the page's Python as one program, with the page's line numbers. Blocks that import a library
with an environment of its own form a separate program. `commands(page)` returns the shell commands,
split as a shell splits them.

A block without a language is an error, so no block is left out. A program prints a line after each
block.
"""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PYTHON = "python"
SHELL = "sh"
YAML = "yaml"
"""The language of blocks that show a file of hyperparameters."""
TEXT = "text"
"""The language of blocks that are not run, such as a file tree or the output of a program."""
ENDED = "ran to the end of line"

_FENCE = re.compile(r"(?P<indent> *)(?P<fence>```+|~~~+) *(?P<language>[^`]*)")
_LIBRARY = re.compile(r"^\s*(?:from|import) (pettingzoo|ray|skrl|tianshou|torchrl)\b", re.MULTILINE)
_INLINE = re.compile(r"(?<!`)`(sc2pool [^`]+)`(?!`)")


@dataclass(frozen=True)
class Block:
    """A fenced code block."""

    language: str
    code: str
    line: int
    """The line number, in the page, of the block's first line of code; lines count from 1."""

    @property
    def library(self) -> str | None:
        """The library that the block imports, if that library has an environment of its own."""
        imported = _LIBRARY.search(self.code) if self.language == PYTHON else None
        return imported[1] if imported else None

    @property
    def end(self) -> int:
        """Number of the closing fence's line."""
        return self.line + self.code.count("\n")


def blocks(text: str) -> list[Block]:
    """The code blocks of a page.

    Raises:
        ValueError: A block has no language, an unknown language, or no end.
    """
    found, lines = [], text.splitlines()
    numbered = iter(enumerate(lines, 1))
    for number, line in numbered:
        opening = _FENCE.fullmatch(line)
        if opening is None:
            continue
        language = opening["language"].strip()
        if language not in (PYTHON, SHELL, YAML, TEXT):
            raise ValueError(f"line {number}: a code block in {language or 'no language'!r}")
        closing = opening["indent"] + opening["fence"]
        inside = []
        for _, code in numbered:
            if code.rstrip() == closing:
                break
            inside.append(code + "\n")
        else:
            raise ValueError(f"line {number}: a code block that does not end")
        found.append(Block(language, textwrap.dedent("".join(inside)), number + 1))
    return found


def program(text: str, library: str | None = None) -> tuple[str, list[str]]:
    """The page's Python as one program, and the lines that it prints if all of it runs.

    Args:
        library: The library with its own environment that the blocks import; None for blocks that
            import no such library.
    """
    lines = [""] * (len(text.splitlines()) + 1)
    expected = []
    for block in blocks(text):
        if block.language == PYTHON and block.library == library:
            lines[block.line - 1 : block.end - 1] = block.code.splitlines()
            told = f"{ENDED} {block.end}"
            lines[block.end - 1] = f"print({told!r}, flush=True)"
            expected.append(told)
    return "\n".join(lines), expected


def libraries(text: str) -> set[str]:
    """The libraries with an environment of their own that the page's Python imports."""
    return {block.library for block in blocks(text) if block.library is not None}


def commands(text: str) -> Iterator[list[str]]:
    """The commands in shell blocks, and the `sc2pool` commands in the text, without comments."""
    for block in blocks(text):
        if block.language == SHELL:
            for line in block.code.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words:
                    yield words
    for inline in _INLINE.findall(text):
        yield shlex.split(inline)


def find_pages(root: Path) -> list[Path]:
    """The README and all pages in `docs`."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
