"""Envs of a test that are closed with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any


@contextmanager
def maker(kind: Callable[..., Any], **defaults: Any) -> Iterator[Callable[..., Any]]:
    """Makes envs of this class, with these keywords unless others are given."""
    with ExitStack() as made:
        yield lambda **given: made.enter_context(closing(kind(**(defaults | given))))
