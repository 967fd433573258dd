"""Delta debugging: the shortest part of a failing list that still fails.

Processes are not deterministic: a part may fail only sometimes, so each part can be tried several
times. The result fails, but a shorter failing part may exist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def shrink(whole: Sequence[T], fails: Callable[[Sequence[T]], bool], repeat: int = 1) -> list[T]:
    """A failing part of `whole`, in its order, that passes if any one element is left out.

    Args:
        whole: a list that fails.
        fails: tries a part once.
        repeat: a part passes if it does not fail in this many tries.
    """

    def fails_once(part: Sequence[T]) -> bool:
        return any(fails(part) for _ in range(repeat))

    kept, parts = list(whole), 2
    while len(kept) > 1:
        size = -(-len(kept) // parts)
        chunks = [kept[start : start + size] for start in range(0, len(kept), size)]
        rests = [
            [one for other in chunks[:i] + chunks[i + 1 :] for one in other]
            for i in range(len(chunks))
        ]
        # If there are two chunks, each is the rest of the other.
        candidates = chunks if len(chunks) == 2 else [*chunks, *rests]
        smaller = next((part for part in candidates if fails_once(part)), None)
        if smaller is not None:
            parts = 2 if len(smaller) <= size else max(2, parts - 1)
            kept = list(smaller)
        elif size == 1:
            break
        else:
            parts = min(len(kept), 2 * parts)
    return kept
