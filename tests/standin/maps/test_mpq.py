"""MPQ archives: read by another program, and by ourselves, whatever is in them."""

from __future__ import annotations

import io
import os

import mpyq
import pytest

from sc2standin.mpq import LIST_FILE, MpqError, pack, unpack

LIMIT_BYTES = 1 << 20


def read_by_mpyq(archive: bytes) -> dict[str, bytes]:
    files = mpyq.MPQArchive(io.BytesIO(archive)).extract()
    return {name.decode(): content for name, content in files.items()}


@pytest.mark.parametrize(
    "files",
    [
        {"one.txt": b"1"},
        {"text": b"abc" * 50_000, "noise": os.urandom(50_000)},
        {"Folder\\Mixed Case.XML": b"<x/>", "replay.gamemetadata.json": b"{}"},
        {f"file{number}": bytes([number]) * (number + 1) for number in range(60)},
    ],
    ids=["one", "large", "names", "many"],
)
def test_packed_files_are_read(files):
    archive = pack(files)
    assert read_by_mpyq(archive) == files
    for name, content in files.items():
        assert unpack(archive, name, LIMIT_BYTES) == content
        assert unpack(archive, name.upper(), LIMIT_BYTES) == content
    assert unpack(archive, LIST_FILE, LIMIT_BYTES).decode().split() == " ".join(files).split()


def test_text_is_compressed():
    assert len(pack({"text": b"abc" * 50_000})) < 2_000


def test_unreadable_archives():
    archive = pack({"text": b"abc" * 100, "noise": os.urandom(100)})
    for content, name, limit_bytes in (
        (archive, "other", LIMIT_BYTES),
        (archive, "text", 299),
        (archive[:-1], "text", LIMIT_BYTES),
        (archive[:20], "text", LIMIT_BYTES),
        (b"", "text", LIMIT_BYTES),
        (b"PK" + archive[2:], "text", LIMIT_BYTES),
    ):
        with pytest.raises(MpqError):
            unpack(content, name, limit_bytes)
