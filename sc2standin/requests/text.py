"""Reads the strings of requests: protobuf returns a string that is not UTF-8 as bytes."""

from __future__ import annotations


def text(value: str | bytes) -> str:
    """The value as a string; bytes that are not UTF-8 become replacement characters."""
    return value if isinstance(value, str) else value.decode(errors="replace")
