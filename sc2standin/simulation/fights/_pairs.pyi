from collections.abc import Iterable, Sequence

from sc2standin.simulation.fights.pairs import Pushes
from sc2standin.simulation.units import Point, Unit

class Geometry:
    def lay_out(
        self,
        units: list[Unit],
        targets: Sequence[Iterable[int]],
        scan: list[float],
        closest: list[float],
        no_touch: float,
        tiny: float,
        push_share: float,
    ) -> None: ...
    def measure(self) -> None: ...
    def gap(self, i: int, j: int) -> float: ...
    def nearest_enemy(self, i: int) -> tuple[int, float]: ...
    def pushes(self) -> Pushes | None: ...
    def loops_until_contact(self, moving: dict[Unit, Point]) -> float: ...
