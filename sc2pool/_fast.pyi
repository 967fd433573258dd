from collections.abc import Callable
from typing import Any, ClassVar

class Plain:
    payload: bytes
    game_loop: int
    score: int
    n_results: int
    simulation_loop: int
    status: ClassVar[int]
    error: ClassVar[tuple[str, ...]]
    def columns(
        self,
    ) -> tuple[list[int], list[int], list[int], list[float], list[float]]: ...
    def find(self, unit_type: int, alliance: int) -> tuple[list[int], list[int], bytearray]: ...
    def numbers(self, name: str, rows: list[int]) -> bytearray: ...

Unusual = tuple[int, bytes, bytes]

class Wire:
    def __init__(self, sock: int, loop: int) -> None: ...
    def step(
        self, first_id: int, actions: list[bytes], loops: int, deadline_s: float
    ) -> Plain | Unusual: ...
    def begin(self, first_id: int, actions: list[bytes], loops: int) -> bool: ...
    def finish(self) -> Plain | Unusual | None: ...
    def taken(self) -> Unusual: ...

class Requests:
    def __init__(self, words: Any, *, request: int) -> None: ...
    def wait(self, sequence: int, epoll: int, bell: int) -> int: ...

class Ringing:
    in_turns: bool
    is_due: bool
    def __init__(self, bell: int, again: Callable[[], None], later: Callable[[], None]) -> None: ...
    def ring(self) -> None: ...

class Row:
    def __init__(
        self,
        words: Any,
        observation: Any,
        mask: Any,
        *,
        must_be_finite: bool,
        reply: int,
        flags: int,
        reward: int,
        total: int,
        masked: int,
    ) -> None: ...
    def put(self, sequence: int, transition: tuple[Any, ...]) -> bool: ...

def step_frames(first_id: int, actions: list[bytes], loops: int) -> bytes: ...
def step_replies(data: bytes, first_id: int, acts: bool) -> Plain | None: ...
def observation(payload: bytes, request_id: int) -> Plain | None: ...
