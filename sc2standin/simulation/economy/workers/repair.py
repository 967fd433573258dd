"""Repairing: SCVs and MULEs give life back to structures and mechanical units, for money.

Rules it keeps: the repair of a whole life takes one worker as long as the type takes to make, and
costs a quarter of the type's cost. Several workers add up. The cost is paid in whole minerals and
whole units of gas, as it adds up. A worker follows its patient, and stops when the patient is
repaired or gone, or when the money is short. A structure under construction cannot be repaired.
"""

from __future__ import annotations

from collections.abc import Callable

from sc2standin.data.unit_types import ADD_ONS, BARRACKS, MECHANICAL, UnitType
from sc2standin.simulation import orders
from sc2standin.simulation.economy.workers.walking import Walking
from sc2standin.simulation.units import Errand, Site, Unit
from sc2standin.simulation.world import World

COST = 0.25
"""The share of a unit's cost that the repair of its whole life costs."""


class Repair:
    """A player's repairs in one episode.

    Args:
        pay: takes minerals and gas; if they do not suffice, takes nothing and returns False.
    """

    def __init__(self, world: World, walking: Walking, pay: Callable[[int, int], bool]) -> None:
        self._world, self._walking, self._pay = world, walking, pay
        self._minerals_due = self._vespene_due = 0.0

    def set_out(self, worker: Unit) -> None:
        """Walk to the patient of the worker's order."""
        patient = self._patient(worker)
        if patient is None:
            orders.finish(self._world, worker)
        else:
            self._walking.walk_to(worker, patient, self._work)

    def _patient(self, worker: Unit) -> Unit | None:
        """The target of a worker's order, if it can be repaired."""
        unit = self._world.by_tag.get(worker.order.target_tag)
        return unit if unit is not None and can_repair(worker, unit) else None

    def _work(self, worker: Unit) -> None:
        """Repair for one loop, and continue in the next loop."""
        patient = self._patient(worker)
        if patient is None:
            orders.finish(self._world, worker)
        elif _moves(patient.type) and not self._walking.touches(worker, patient):
            self.set_out(worker)
        elif self._pay_for_work(patient):
            kind = patient.type
            patient.life = min(patient.life + kind.life / work_loops(kind), kind.life)
            worker.job = Errand(self._world.loop + 1, self._work)
        else:
            orders.finish(self._world, worker)

    def _pay_for_work(self, patient: Unit) -> bool:
        """Pay for one loop of work; False if the money is short."""
        kind = patient.type
        share = min(1.0 / work_loops(kind), 1.0 - patient.life / kind.life) * COST
        minerals = self._minerals_due + share * kind.minerals
        vespene = self._vespene_due + share * kind.vespene
        if not self._pay(int(minerals), int(vespene)):
            return False
        self._minerals_due, self._vespene_due = minerals % 1.0, vespene % 1.0
        return True


def can_repair(worker: Unit, unit: Unit) -> bool:
    """True if a worker can repair this unit."""
    return (
        unit.owner == worker.owner
        and unit is not worker
        and unit.life < unit.type.life
        and MECHANICAL in unit.type.attributes
        and work_loops(unit.type) > 0
        and not isinstance(unit.job, Site)
    )


def work_loops(kind: UnitType) -> float:
    """The loops in which one worker repairs the whole life of a unit; 0 if that is not possible.

    An upgraded, lowered or lifted structure takes as long as its original type.
    """
    while kind.made_from is not None:
        kind = kind.made_from
    # The type of an add-on without a structure has a build time of two loops.
    return ADD_ONS.get((BARRACKS, kind), kind).build_time_loops


def _moves(kind: UnitType) -> bool:
    return kind.mobile or kind.afloat
