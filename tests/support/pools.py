"""Makes envs that are closed at the end of a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any


@contextmanager
def maker(kind: Callable[..., Any], **defaults: Any) -> Iterator[Callable[..., Any]]:
    """A function that makes envs of a class with these keywords; a call can replace keywords."""
    with ExitStack() as made:
        yield lambda **given: made.enter_context(closing(kind(**(defaults | given))))


def begun(env: Any) -> Any:
    """Resets the env, and returns it."""
    env.reset()
    return env
