"""Delta debugging: the shortest part of a failing list that still fails.

Processes are not deterministic, so a part that fails only sometimes may be taken for one that does
not fail; each part is therefore tried more than once. The result fails; a shorter one may exist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def shrink(whole: Sequence[T], fails: Callable[[Sequence[T]], bool], repeat: int = 1) -> list[T]:
    """A part of `whole`, in its order, that fails and of which no element can be left out.

    Args:
        whole: a list that fails.
        fails: tries a part once.
        repeat: how often a part is tried until it is taken for one that does not fail.
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
        # Of two chunks, each is the rest of the other.
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
