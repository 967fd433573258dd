"""Tests that foreign files are read within limits, and that an error is one line for each file."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from sc2pool.errors import ConfigError
from sc2pool.foreign import (
    Archive,
    printable,
    read_json,
    read_table,
    read_yaml,
    shown,
    why_not_ours,
)
from sc2pool.platform import WINDOWS

pytest.importorskip("yaml")


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("Zelle 3, 漢字, €", "Zelle 3, 漢字, €"),
        ("\x1b[2J\x1b]0;title\x07", r"\x1b[2J\x1b]0;title\x07"),
        ("won\nsc2pool: saved\r", r"won\nsc2pool: saved\r"),
        ("\x9b2J", r"\x9b2J"),
        ("gpj.\u202eexe\u2028", r"gpj.\u202eexe\u2028"),
        ("\udc80", r"\udc80"),
        ("a" * 1000, "a" * 199 + "…"),
    ],
)
def test_a_terminal_gets_no_control_characters(text, safe):
    assert printable(text) == safe


def test_lines_stay_if_they_may():
    assert printable("a\nb\tc\x1b", keep="\n") == "a\nb\\tc\\x1b"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1, "two", {"three": 4.0}], "[1, 'two', {'three': 4.0}]"),
        (10**5000, "a number of many digits"),
        ("\x1b" * 1000, None),
        ([[[[[[list(range(1000))] * 1000] * 1000] * 1000] * 1000] * 1000], None),
    ],
    ids=["plain", "number", "text", "nested"],
)
def test_a_value_is_shown_in_a_line(value, text):
    told = shown(value)
    assert text is None or told == text
    assert len(told) < 500
    assert told.isprintable()


def nested(opening: str, closing: str, levels: int = 100_000) -> str:
    return levels * opening + levels * closing


BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join(9 * [f'*a{n - 1}'])}]\n" for n in range(1, 9)
)
"""A YAML file with aliases that expand to 9^9 values."""
MERGES = "a0: &a0 {x: 1, y: 2}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{','.join(9 * [f'*a{n - 1}'])}]}}\n" for n in range(1, 9)
)
"""A YAML file whose merge keys make 9^9 values; PyYAML merges while it reads."""


READERS = {
    "JSON": read_json,
    "YAML": read_yaml,
    "a table": lambda path: list(read_table(path)),
    "an archive": lambda path: Archive(path, str(path), "an archive"),
}


@pytest.mark.parametrize(
    ("kind", "content", "why"),
    [
        ("YAML", BOMB, "more than 10,000 values"),
        ("YAML", MERGES, "more than 10,000 values"),
        ("YAML", "&a [*a]", "a value that holds itself"),
        ("YAML", nested("[", "]"), "more than 50 levels"),
        ("YAML", nested("{a: ", "}"), "more than 50 levels"),
        ("YAML", "- " * 20_000, "more than 50 levels"),
        ("YAML", "n: " + "9" * 10_000, "a number of many digits"),
        ("YAML", "n: 1" + ":59" * 100_000, "a number of many digits"),
        ("YAML", "n: 0x" + "f" * 10_000, "a number of many digits"),
        ("YAML", "when: 2026-13-45", "month must be in 1..12"),
        ("YAML", "!!python/object/apply:os.system [true]", "could not determine a constructor"),
        ("YAML", "{[a]: b}: c", "found unhashable key"),
        ("YAML", "a: [", "expected the node content"),
        ("YAML", b"\xff\xfe\x00", "truncated data"),
        ("YAML", b"a: \x00", "special characters are not allowed"),
        ("JSON", nested("[", "]"), ""),
        ("JSON", '{"a":' * 60 + "1" + "}" * 60, "more than 50 levels"),
        ("JSON", "9" * 10_000, "Exceeds the limit"),
        ("JSON", b"\xff", "can't decode"),
        ("JSON", "", "Expecting value"),
        ("JSON", '{"a": 1', "Expecting ',' delimiter"),
        ("a table", b"a,b\n\xff,1\n", "can't decode"),
        ("a table", "a\n" + "1" * 200_000 + "\n", "field larger than"),
    ],
)
def test_a_file_of_which_nothing_is_made(tmp_path, kind, content, why):
    """The error must be one line, which names the file and the reason."""
    path = tmp_path / "file"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError, match=f"is not {kind}: .*{why}") as caught:
        READERS[kind](path)
    assert str(caught.value).startswith(f"{path} ")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < len(str(path)) + 300


@pytest.mark.parametrize("read", [read_json, read_yaml])
def test_a_file_that_is_too_large(tmp_path, read):
    path = tmp_path / "file"
    path.write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(ConfigError, match="too large: expected at most 1,048,576 bytes"):
        read(path)


@pytest.mark.parametrize("read", [read_json, read_yaml, lambda path: list(read_table(path))])
def test_a_file_that_cannot_be_read(tmp_path, read):
    with pytest.raises(ConfigError, match="missing cannot be read: No such file"):
        read(tmp_path / "missing")
    with pytest.raises(ConfigError, match="cannot be read: "):
        read(tmp_path)


needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")


@needs_pipes
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_pipe_that_nobody_writes_into(tmp_path, monkeypatch, read):
    monkeypatch.setattr("sc2pool.foreign._ARRIVES_WITHIN_S", 0.1)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match=r"pipe cannot be read: it is (a pipe|not a reg)"):
        read(tmp_path / "pipe")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a device without an end")
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_device_without_an_end(read):
    with pytest.raises(ConfigError, match=r"/dev/zero (is too large|.*not a regular file)"):
        read(Path("/dev/zero"))


@needs_pipes
def test_a_pipe_is_read_to_its_end(tmp_path, monkeypatch):
    """A pipe (such as a shell's `<(…)`) is read to its end, also if its writer begins late."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    awaited = threading.Event()
    monkeypatch.setattr("sc2pool.foreign.time", SimpleNamespace(sleep=lambda _: awaited.set()))

    def write() -> None:
        assert awaited.wait(10)
        with pipe.open("w") as file:
            for part in ("[1,\n", "2]\n"):
                file.write(part)
                file.flush()

    writer = threading.Thread(target=write)
    writer.start()
    assert read_json(pipe) == [1, 2]
    writer.join()


def test_what_is_said_is_read(tmp_path):
    path = tmp_path / "file"
    path.write_text("default: &d {n: 1_000, at: [1e-3, lin_1]}\ntask:\n  <<: *d\n  n: 2\n")
    section = {"n": 1000, "at": ["1e-3", "lin_1"]}
    assert read_yaml(path) == {"default": section, "task": section | {"n": 2}}
    path.write_text(json.dumps({"default": section}))
    assert read_json(path) == {"default": section}
    path.write_text("a,b\n1,2\n3,")
    assert list(read_table(path)) == [["a", "b"], ["1", "2"]]


@pytest.mark.skipif(WINDOWS, reason="what lies in the folders of a user is the user's there")
@pytest.mark.parametrize(
    ("uid", "mode", "why"),
    [
        (os.getuid() if not WINDOWS else 0, 0o755, ""),
        (0, 0o755, ""),
        (4_000_000_000, 0o755, "it belongs to user 4000000000"),
        (0, 0o757, "every user may write there"),
        (0, 0o1777, "every user may write there"),
        (0, 0o775, "its group may write there"),
    ],
)
def test_who_else_can_have_written_a_file(uid, mode, why):
    found = SimpleNamespace(st_uid=uid, st_mode=stat.S_IFDIR | mode, st_gid=4_000_000_000)
    assert why_not_ours(found) == why


@pytest.mark.skipif(WINDOWS, reason="only POSIX knows users by numbers")
def test_users_and_groups_have_names(monkeypatch):
    import grp
    import pwd

    found = SimpleNamespace(st_uid=4_000_000_000, st_mode=stat.S_IFDIR | 0o775, st_gid=7)
    with monkeypatch.context() as known:
        known.setattr(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_name="jane"))
        assert why_not_ours(found) == "it belongs to user jane"
    found.st_uid, own = os.getuid(), pwd.getpwuid(os.getuid()).pw_name
    for members, why in (([], ""), ([own], ""), ([own, "jane"], "its group may write there")):
        group = SimpleNamespace(gr_name=own, gr_mem=members)
        monkeypatch.setattr(grp, "getgrgid", lambda gid, group=group: group)
        assert why_not_ours(found) == why


@pytest.mark.skipif(WINDOWS, reason="what lies in the folders of a user is the user's there")
def test_a_file_that_must_be_ours(tmp_path):
    path = tmp_path / "file"
    path.write_text("{}")
    assert read_json(path, only_ours=True) == {}
    path.chmod(0o666)
    with pytest.raises(ConfigError, match="file is not used: every user may write there"):
        read_json(path, only_ours=True)
