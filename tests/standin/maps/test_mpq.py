"""MPQ archives: read by another program, and by ourselves, whatever is in them."""

from __future__ import annotations

import bz2
import io
import os
import struct
import zlib
from collections.abc import Mapping

import mpyq
import pytest

from sc2standin import mpq
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


def in_sectors(
    files: Mapping[str, bytes], *, shift: int = 5, checksums: bool = True, bzip2: bool = False
) -> bytes:
    """An archive as the real game's editor writes it: in sectors, with their checksums' place."""
    sector_bytes = 512 << shift
    archive = pack(files)
    hashes_at, _, n_hashes, n_blocks = struct.unpack_from("<IIII", archive, 16)
    hashes = archive[hashes_at : hashes_at + 16 * n_hashes]
    contents, blocks = bytearray(), []
    for content in (*files.values(), "\r\n".join(files).encode()):
        sectors = []
        for begin in range(0, len(content), sector_bytes):
            sector = content[begin : begin + sector_bytes]
            small = b"\x10" + bz2.compress(sector) if bzip2 else b"\x02" + zlib.compress(sector)
            sectors.append(min(sector, small, key=len))
        places = [4 * (len(sectors) + 1 + checksums)]
        for sector in sectors:
            places.append(places[-1] + len(sector))
        places += [places[-1]] * checksums
        stored = struct.pack(f"<{len(places)}I", *places) + b"".join(sectors)
        flags = 0x80000200 | 0x04000000 * checksums
        blocks.append((32 + len(contents), len(stored), len(content), flags))
        contents += stored
    table = mpq._encrypted(b"".join(struct.pack("<IIII", *b) for b in blocks), "(block table)")
    end = 32 + len(contents)
    place = (end, end + len(hashes), n_hashes, n_blocks)
    size = end + len(hashes) + len(table)
    header = struct.pack("<4sIIHHIIII", mpq.MAGIC, 32, size, 0, shift, *place)
    return header + contents + hashes + table


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("bzip2", [True, False])
def test_files_in_sectors_are_read(checksums, bzip2):
    files = {"text": b"abc" * 9_000, "noise": os.urandom(3_000), "one": b"1", "full": b"x" * 1024}
    archive = in_sectors(files, shift=1, checksums=checksums, bzip2=bzip2)
    # mpyq takes a sector for compressed that is as it was, so it does not read the others.
    assert mpyq.MPQArchive(io.BytesIO(archive)).read_file("text") == files["text"]
    for name, content in files.items():
        assert unpack(archive, name, LIMIT_BYTES) == content


def test_user_data_before_the_header_is_passed_over():
    files = {"text": b"abc" * 9_000}
    told = b"anything"
    before = struct.pack("<4sIII", mpq.USER_DATA, 512, 1024, len(told)) + told
    archive = before.ljust(1024, b"\0") + pack(files)
    assert read_by_mpyq(archive) == files
    assert unpack(archive, "text", LIMIT_BYTES) == files["text"]


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"", "text", "not an MPQ archive"),
        (b"garbage" * 100, "text", "not an MPQ archive"),
        (mpq.USER_DATA + bytes(100), "text", "not an MPQ archive"),
        (mpq.USER_DATA, "text", "cut off"),
        (in_sectors({"text": b"abc" * 9_000})[:60], "text", "a table is cut off"),
        (in_sectors({"text": b"abc" * 9_000}), "other", "the archive has no other"),
        (in_sectors({"text": b"x" * LIMIT_BYTES + b"x"}), "text", "has 1048577 bytes, more than"),
        (in_sectors({"text": bytes(300)}).replace(b"\x02x", b"\x12x"), "text", "neither zlib nor"),
        (in_sectors({"text": bytes(300)}).replace(b"\x02x", b"\x02y"), "text", "header check"),
    ],
)
def test_what_cannot_be_read_is_named(content, name, message):
    with pytest.raises(MpqError, match=message):
        unpack(content, name, LIMIT_BYTES)


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
