"""Reads files that another user may have written, and shows texts of files and games safely.

Rules: a size limit is for the decoded content, not the file's bytes, and is checked during the
reading. For a file that is damaged, too large or of another format, a ConfigError of one line is
raised. A message shows foreign values through `shown` and foreign texts through `printable`.
"""

from __future__ import annotations

import csv
import errno
import json
import os
import reprlib
import stat
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BytesIO, RawIOBase, TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, Final

from sc2pool.deadline import Deadline
from sc2pool.errors import ConfigError
from sc2pool.optional import needed_for
from sc2pool.platform import WINDOWS

REFUSED_PATH: Final = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP)
"""The system's errors about a path: it is forbidden, too long, or a loop of links."""
MOST_BYTES: Final = 1 << 20
"""Maximum bytes of a JSON or YAML file; the files that sc2pool writes have some kilobytes."""
_MOST_VALUES: Final = 10_000
"""Maximum number of values in a YAML file; an alias counts as all values that it repeats."""
_MOST_DIGITS: Final = 100
_MOST_LEVELS: Final = 50
"""Maximum depth of nested lists and dicts; Python's own code fails at a depth of some hundreds."""
_GROWTH_BYTES: Final = 16 << 20
"""By how much an archive's parts may exceed the file's size; SB3 does not compress its archives."""
_PIECE_BYTES: Final = 1 << 20
_ARRIVES_WITHIN_S: Final = 5.0
"""How long a pipe or a device may take to deliver its whole content."""
_ARRIVAL_POLL_S: Final = 0.01
_MOST_SHOWN: Final = 200
"""Maximum length of a foreign text in a message, in characters."""


def printable(text: str, most: int | None = _MOST_SHOWN, *, keep: str = "") -> str:
    """Make a foreign text safe for a terminal: cut it, and escape its control characters.

    Control characters can clear the screen, set the window's title, reverse the direction of
    writing, or begin a line that looks like a line of the program.

    Args:
        most: The maximum number of characters; None for no limit.
        keep: Control characters that are not escaped, such as "\\n" in a text of several lines.
    """
    if most is not None and len(text) > most:
        text = text[: most - 1] + "…"
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or one in keep else one.encode("unicode_escape").decode()
        for one in text
    )


class _Shown(reprlib.Repr):
    """Shortens values as `reprlib` does, and also shortens integers with very many digits."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = self.maxlist = self.maxtuple = self.maxdict = self.maxset = 4
        self.maxstring = self.maxother = 60

    def repr_int(self, x: int, level: int) -> str:
        return super().repr_int(x, level) if x.bit_length() < 1000 else "a number of many digits"


_SHOWN = _Shown()


def shown(value: Any) -> str:
    """The `repr` of a foreign value, cut to about one line, for a message."""
    return printable(_SHOWN.repr(value))


@contextmanager
def _read_as(kind: str, what: object) -> Iterator[None]:
    """Turn any error in the block into a `ConfigError`, which says that `what` is not a `kind`."""
    try:
        yield
    except ConfigError:
        raise
    except OSError as error:
        raise ConfigError(f"{what} cannot be read: {error.strerror or error}") from error
    except Exception as error:  # the parsers' exceptions have no common base class
        words = printable(" ".join(str(error).split())) or type(error).__name__
        raise ConfigError(f"{what} is not {kind}: {words}") from error


def read_bytes(path: Path, most: int = MOST_BYTES, *, only_ours: bool = False) -> bytes:
    """A file's bytes; ConfigError if unreadable, too long or (with `only_ours`) not private."""
    with _read_as("a file", path), open(path, "rb", buffering=0, opener=_at_once) as file:
        found = os.fstat(file.fileno())
        if only_ours and (why := why_not_ours(found)):
            raise ConfigError(f"{path} is not used: {why}")
        content = file.read(most + 1) if stat.S_ISREG(found.st_mode) else _arriving(file, most + 1)
    if len(content) > most:
        raise ConfigError(f"{path} is too large: expected at most {most:,} bytes")
    return content


def _at_once(path: str, flags: int) -> int:
    """Open a file without waiting; a plain open of a pipe would wait for a program that writes."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _arriving(file: RawIOBase, most: int) -> bytes:
    """Read up to `most` bytes from a pipe or device; raises OSError if it does not end in time."""
    deadline = Deadline.after(_ARRIVES_WITHIN_S)
    content = b""
    may_be_over = not stat.S_ISFIFO(os.fstat(file.fileno()).st_mode)
    while len(content) < most:
        piece = file.read(most - len(content))  # None if no bytes have come yet
        if piece == b"" and (content or may_be_over):
            break
        content += piece or b""
        if deadline.expired():
            raise TimeoutError(f"it is a pipe without an end after {_ARRIVES_WITHIN_S:g} s")
        if not piece:  # only polling can wait for a writer
            time.sleep(_ARRIVAL_POLL_S)
    return content


@contextmanager
def open_regular(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file; raises OSError for a folder, a pipe, a device or an unreadable file."""
    with open(path, "rb", opener=_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("it is not a regular file")
        yield file


def read_json(
    path: Path, kind: str = "JSON", *, most: int = MOST_BYTES, only_ours: bool = False
) -> Any:
    """The value in a JSON file.

    Args:
        kind: The expected kind of file, for the error's message.
        most: The maximum number of bytes.
        only_ours: Refuse a file that another user can have written.

    Raises:
        ConfigError: the file is missing, cannot be read, or is not of this kind.
    """
    with _read_as(kind, path):
        return parse_json(read_bytes(path, most, only_ours=only_ours))


def parse_json(content: bytes) -> Any:
    """Parse JSON; raises ValueError or RecursionError for other content, or for deep nesting."""
    value = json.loads(content)
    check_levels(value)
    return value


def check_levels(value: Any) -> None:
    """Raise `ValueError` if lists and dicts are nested too deeply."""
    level = [value]
    for _ in range(_MOST_LEVELS):
        level = [part for one in level for part in _parts(one)]
        if not level:
            return
    raise ValueError(f"more than {_MOST_LEVELS} levels within each other")


def _parts(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def read_yaml(path: Path) -> Any:
    """The value in a YAML file.

    Aliases are allowed, but an alias counts as all values that it repeats, because nested aliases
    can stand for an exponential number of values.

    Raises:
        ConfigError: the file is missing, cannot be read, is not YAML, or exceeds a limit.
        MissingPackageError: PyYAML is not installed.
    """
    with needed_for("a YAML file"):
        import yaml  # noqa: PLC0415

    class Loader(yaml.SafeLoader):
        """Counts the values that an alias repeats, before these values are made."""

        def __init__(self, content: bytes) -> None:
            super().__init__(content)  # PyYAML detects the encoding of bytes
            self.sizes: dict[int, int] = {}
            self.level = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            of_alias = self.check_event(yaml.AliasEvent)
            self.level += 1
            if self.level > _MOST_LEVELS:
                raise yaml.YAMLError(f"more than {_MOST_LEVELS} levels within each other")
            node: Any = super().compose_node(parent, index)
            self.level -= 1
            if of_alias and id(node) not in self.sizes:
                raise yaml.YAMLError("a value that holds itself")
            # The time in which Python reads a number grows with the square of the number's length.
            if node.tag.endswith((":int", ":float")) and len(node.value) > _MOST_DIGITS:
                raise yaml.YAMLError("a number of many digits")
            if not of_alias:
                self.sizes[id(node)] = 1 + sum(self.sizes[id(one)] for one in _nodes_in(node))
            if self.sizes[id(node)] > _MOST_VALUES:
                raise yaml.YAMLError(f"more than {_MOST_VALUES:,} values")
            return node

    with _read_as("YAML", path):
        loader = Loader(read_bytes(path))
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()


def _nodes_in(node: Any) -> Iterator[Any]:
    """The child nodes of a YAML node."""
    if not isinstance(node.value, str):
        for one in node.value:
            yield from one if isinstance(one, tuple) else (one,)


def read_table(path: Path) -> Iterator[list[str]]:
    """The rows of a CSV file, beginning with the names of the columns.

    A last line without a newline is left out, because its writer may not have finished it.

    Raises:
        ConfigError: the file is missing, cannot be read, is not UTF-8 text, or is not CSV.
    """
    with _read_as("a table", path), open_regular(path) as file:
        lines = TextIOWrapper(file, encoding="utf-8", newline="")
        yield from csv.reader(line for line in lines if line.endswith("\n"))


class Archive:
    """A ZIP file whose parts are read within limits.

    Args:
        source: The file, or its content.
        what: The file's name for messages.
        kind: The expected kind of file for messages.

    Raises:
        ConfigError: the source cannot be read, or is not a ZIP file; methods may raise it, too.
    """

    def __init__(self, source: Path | bytes, what: str, kind: str) -> None:
        self._what, self._kind = what, kind
        with self._read(), ExitStack() as opened:
            file: BinaryIO
            if isinstance(source, bytes):
                file = BytesIO(source)
            else:
                file = opened.enter_context(open_regular(source))
            size = file.seek(0, os.SEEK_END)
            self._file = opened.enter_context(zipfile.ZipFile(file))
            self._opened = opened.pop_all()
        self._most = size + _GROWTH_BYTES

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def _read(self) -> Any:
        return _read_as(self._kind, self._what)

    @property
    def parts(self) -> list[str]:
        """The names of the archive's parts."""
        return self._file.namelist()

    def read(self, part: str) -> bytes:
        """The content of a part."""
        with self._read():
            return b"".join(self._pieces(part, self._most))

    def read_json(self, part: str) -> Any:
        """The JSON value in a part; also raises the errors of `parse_json`."""
        return parse_json(self.read(part))

    def _pieces(self, part: str, most: int) -> Iterator[bytes]:
        if self._file.getinfo(part).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{shown(part)} is compressed in an unusual way")
        # Read the part in pieces, because the size in its header may be false.
        with self._file.open(part) as file:
            while piece := file.read(_PIECE_BYTES):
                most -= len(piece)
                if most < 0:
                    raise ValueError(f"{shown(part)} is much larger than the file")
                yield piece

    def check(self, *parts: str) -> None:
        """Check that these parts (default: all), when unpacked, are not much larger than the file.

        Archives inside these parts are also checked. Other code, which has no limits, may then
        read the parts.
        """
        with self._read():
            left = self._most
            for part in parts or self.parts:
                pieces = []
                for piece in self._pieces(part, left):
                    pieces.append(piece)
                    left -= len(piece)
                content = b"".join(pieces)
                if zipfile.is_zipfile(BytesIO(content)):
                    with Archive(content, self._what, self._kind) as inner:
                        inner.check()


def why_not_ours(found: os.stat_result) -> str:
    """Why another user may have written this file or folder; empty if only this user and root can.

    A group with the user's own name counts as private: many systems make such a group for each
    user.
    """
    if WINDOWS:
        return ""  # on Windows, other users cannot write into a user's folders
    import grp  # noqa: PLC0415 - only POSIX has these modules
    import pwd  # noqa: PLC0415

    if found.st_uid not in (0, os.getuid()):
        owner: object = found.st_uid
        with suppress(KeyError):
            owner = pwd.getpwuid(found.st_uid).pw_name
        return f"it belongs to user {owner}"
    if found.st_mode & stat.S_IWOTH:
        return "every user may write there"
    if found.st_mode & stat.S_IWGRP:
        with suppress(KeyError):
            group, user = grp.getgrgid(found.st_gid), pwd.getpwuid(os.getuid()).pw_name
            if group.gr_name == user and not set(group.gr_mem) - {user}:
                return ""
        return "its group may write there"
    return ""
