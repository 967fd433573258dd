"""MPQ archives, the container of the game's replay files.

An archive has these parts:
* User data, in replays of the real game: a block before the header, with the header's offset.
* Header: the offsets and sizes of the two tables.
* Contents: each file in one piece or in sectors, compressed if that makes it smaller.
* Hash table: for three hashes of a file's name, the file's number in the block table.
* Block table: the place, size and flags of each file.

The hash table and the block table are encrypted with their names as keys, as the format demands.
The file `(listfile)` lists the other files. `pack` writes each file in one piece, compressed with
zlib. `unpack` checks every place and size.
"""

from __future__ import annotations

import bz2
import struct
import zlib
from collections.abc import Mapping
from functools import lru_cache

MAGIC = b"MPQ\x1a"
USER_DATA = b"MPQ\x1b"
LIST_FILE = "(listfile)"
_USER_DATA = struct.Struct("<4sII")
"""The magic bytes, the size of the block of user data, and the header's offset."""
_HEADER = struct.Struct("<4sIIHHIIII")
_HASH = struct.Struct("<IIHHI")
_BLOCK = struct.Struct("<IIII")
_VERSION, _SECTOR_SHIFT = 0, 3
_EXISTS, _ONE_PIECE, _COMPRESSED = 0x80000000, 0x01000000, 0x00000200
_ENCRYPTED, _IMPLODED = 0x00010000, 0x00000100
_SECTOR_BYTES = 512
"""A sector's size in bytes is this number times two to the power of the shift in the header."""
_MOST_SHIFT = 15
_ZLIB, _BZIP2 = b"\x02", b"\x10"
"""The first byte of contents compressed with zlib, and of contents compressed with bzip2."""
_FREE = 0xFFFFFFFF
"""The block number of a free entry of the hash table."""
_MAX_FILES = 64
_MASK = 0xFFFFFFFF

# The kinds of hashes of a name in this format.
_PLACE, _NAME_A, _NAME_B, _KEY = range(4)


class MpqError(ValueError):
    """The archive cannot be read, or has no such file."""


def pack(files: Mapping[str, bytes]) -> bytes:
    """An archive of these files; no file may be empty."""
    files = dict(files) | {LIST_FILE: "\r\n".join(files).encode()}
    contents, blocks = bytearray(), []
    for content in files.values():
        flags, stored = _EXISTS | _ONE_PIECE, content
        compressed = _ZLIB + zlib.compress(content, 9)
        if len(compressed) < len(content):
            flags, stored = flags | _COMPRESSED, compressed
        blocks.append((_HEADER.size + len(contents), len(stored), len(content), flags))
        contents += stored
    hashes = _hash_table(list(files))
    hash_table = _encrypted(b"".join(_HASH.pack(*entry) for entry in hashes), "(hash table)")
    block_table = _encrypted(b"".join(_BLOCK.pack(*entry) for entry in blocks), "(block table)")
    hashes_at = _HEADER.size + len(contents)
    blocks_at = hashes_at + len(hash_table)
    header = _HEADER.pack(
        MAGIC,
        _HEADER.size,
        blocks_at + len(block_table),
        _VERSION,
        _SECTOR_SHIFT,
        hashes_at,
        blocks_at,
        len(hashes),
        len(blocks),
    )
    return header + contents + hash_table + block_table


def unpack(archive: bytes, name: str, max_bytes: int) -> bytes:
    """The content of one file; raises MpqError, for example if it is longer than `max_bytes`."""
    if archive.startswith(USER_DATA):
        if len(archive) < _USER_DATA.size:
            raise MpqError("an MPQ archive that is cut off")
        _, _, begin = _USER_DATA.unpack_from(archive)
        archive = archive[begin:]
    if not archive.startswith(MAGIC):
        raise MpqError("not an MPQ archive")
    try:
        _, _, _, _, shift, hashes_at, blocks_at, hashes, blocks = _HEADER.unpack_from(archive)
        if hashes > 4 * _MAX_FILES or blocks > _MAX_FILES:
            raise MpqError("too many files")
        number = _find(_table(archive, hashes_at, hashes, _HASH, "(hash table)"), name)
        block = _table(archive, blocks_at, blocks, _BLOCK, "(block table)")[number]
    except (struct.error, IndexError):
        raise MpqError("an MPQ archive that is cut off") from None
    place, stored_size, size, flags = block
    stored = archive[place : place + stored_size]
    if len(stored) != stored_size:
        raise MpqError(f"{name} is cut off")
    if size > max_bytes:
        raise MpqError(f"{name} has {size} bytes, more than {max_bytes}")
    if flags & (_ENCRYPTED | _IMPLODED):
        raise MpqError(f"{name} is encrypted or imploded, which is not supported")
    if flags & _ONE_PIECE or not flags & _COMPRESSED or not size:
        content = _expanded(stored, size) if flags & _COMPRESSED else stored
    else:
        content = _sectors(stored, size, _SECTOR_BYTES << min(shift, _MOST_SHIFT))
    if len(content) != size:
        raise MpqError(f"{name} is broken")
    return content


def _sectors(stored: bytes, size: int, sector_bytes: int) -> bytes:
    """The content of a file in sectors; `stored` begins with a table of the sectors' offsets."""
    count = -(-size // sector_bytes)
    try:
        places = struct.unpack_from(f"<{count + 1}I", stored)
    except struct.error:
        raise MpqError("a table of sectors is cut off") from None
    left = [min(sector_bytes, size - at) for at in range(0, size, sector_bytes)]
    return b"".join(
        _expanded(stored[begin:end], length)
        for begin, end, length in zip(places, places[1:], left, strict=False)
    )


def _expanded(stored: bytes, size: int) -> bytes:
    """The content of a file or sector; `stored` is compressed if it has less than `size` bytes."""
    return _inflated(stored, size) if len(stored) < size else stored


def _inflated(stored: bytes, size: int) -> bytes:
    kind, compressed = stored[:1], stored[1:]
    try:
        if kind == _ZLIB:
            return zlib.decompressobj().decompress(compressed, size + 1)
        if kind == _BZIP2:
            return bz2.BZ2Decompressor().decompress(compressed, size + 1)
    except (zlib.error, OSError) as error:
        raise MpqError(str(error)) from None
    raise MpqError("a way to compress that is neither zlib nor bzip2")


def _hash_table(names: list[str]) -> list[tuple[int, int, int, int, int]]:
    """The hash table's entries. An entry stands at its name's hash, or at the next free place."""
    count = 16
    while count < 2 * len(names):
        count *= 2
    table = [(_FREE, _FREE, 0xFFFF, 0xFFFF, _FREE)] * count
    for number, name in enumerate(names):
        place = _hash(name, _PLACE) % count
        while table[place][-1] != _FREE:
            place = (place + 1) % count
        table[place] = (_hash(name, _NAME_A), _hash(name, _NAME_B), 0, 0, number)
    return table


def _find(hashes: list[tuple[int, ...]], name: str) -> int:
    wanted = _hash(name, _NAME_A), _hash(name, _NAME_B)
    for first, second, _locale, _platform, number in hashes:
        if (first, second) == wanted and number != _FREE:
            return number
    raise MpqError(f"the archive has no {name}")


def _table(
    archive: bytes, place: int, count: int, row: struct.Struct, key: str
) -> list[tuple[int, ...]]:
    content = archive[place : place + count * row.size]
    if len(content) != count * row.size:
        raise MpqError("a table is cut off")
    return list(row.iter_unpack(_decrypted(content, key)))


def _hash(name: str, kind: int) -> int:
    """One of the four kinds of hashes of a name. Upper and lower case have equal hashes."""
    table = _numbers()
    first, second = 0x7FED7FED, 0xEEEEEEEE
    for letter in name.upper().encode():
        first = table[kind * 256 + letter] ^ (first + second) & _MASK
        second = letter + first + second * 33 + 3 & _MASK
    return first


def _encrypted(content: bytes, key_name: str) -> bytes:
    return _crypted(content, key_name, decrypt=False)


def _decrypted(content: bytes, key_name: str) -> bytes:
    return _crypted(content, key_name, decrypt=True)


def _crypted(content: bytes, key_name: str, *, decrypt: bool) -> bytes:
    """Combine each word of 32 bits with a key that depends on the plain words before it."""
    table, key, second = _numbers(), _hash(key_name, _KEY), 0xEEEEEEEE
    words = []
    for (word,) in struct.iter_unpack("<I", content):
        second = second + table[0x400 + (key & 0xFF)] & _MASK
        other = word ^ (key + second) & _MASK
        plain = other if decrypt else word
        key = (~key << 21) + 0x11111111 & _MASK | key >> 11
        second = plain + second * 33 + 3 & _MASK
        words.append(other)
    return struct.pack(f"<{len(words)}I", *words)


@lru_cache(maxsize=1)
def _numbers() -> list[int]:
    """The pseudo-random numbers that hashes and encryption use."""
    table, seed = [0] * 0x500, 0x00100001
    for i in range(0x100):
        for part in range(5):
            seed = (seed * 125 + 3) % 0x2AAAAB
            high = (seed & 0xFFFF) << 16
            seed = (seed * 125 + 3) % 0x2AAAAB
            table[part * 0x100 + i] = high | seed & 0xFFFF
    return table
