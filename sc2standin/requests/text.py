"""Strings of a request: protobuf gives the bytes of those that are no UTF-8."""

from __future__ import annotations


def text(value: str | bytes) -> str:
    """A string for sure; what is no UTF-8 becomes a question mark."""
    return value if isinstance(value, str) else value.decode(errors="replace")
