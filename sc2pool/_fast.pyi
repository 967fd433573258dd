from typing import ClassVar

class Plain:
    payload: bytes
    game_loop: int
    score: int
    status: ClassVar[int]
    error: ClassVar[tuple[str, ...]]
    def columns(
        self,
    ) -> tuple[list[int], list[int], list[int], list[float], list[float]]: ...
    def find(self, unit_type: int, alliance: int) -> tuple[list[int], list[int], bytearray]: ...
    def numbers(self, name: str, rows: list[int]) -> bytearray: ...

def observation(payload: bytes, request_id: int) -> Plain | None: ...
