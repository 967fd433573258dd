from collections.abc import Iterable, Sequence

from sc2standin.simulation.units import Point, Unit, Way

class Geometry:
    def lay_out(
        self,
        units: list[Unit],
        index: dict[int, int],
        targets: Sequence[Iterable[int]],
        scan: list[float],
        closest: list[float],
        no_touch: float,
        tiny: float,
        ahead: float,
        graze: float,
        rounds: int,
        turns: tuple[Point, ...],
    ) -> None: ...
    def measure(self) -> None: ...
    def gap(self, i: int, j: int) -> float: ...
    def nearest_enemy(self, i: int) -> tuple[int, float]: ...
    def take_note(self, ways: list[Way | None]) -> None: ...
    def steer(self, ways: list[Way | None]) -> None: ...
    def keep_apart(
        self, vx: list[float], vy: list[float]
    ) -> tuple[list[float], list[float]] | None: ...
    def loops_until_contact(self, moving: dict[Unit, Point]) -> float: ...
