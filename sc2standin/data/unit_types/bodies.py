"""The bodies of the unit types that only debug commands create: what the game's tables lack.

Hit points, radii, energy and detection are the unit editor's of patch 5.0.3, from memory and not
verified. The rest of such a type comes from the tables (`data.derived`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Body:
    """What the tables do not say of a unit type."""

    life: float
    shields: float = 0.0
    radius: float = 0.375
    half_width: float = 0.0
    """Half the width of the square that a structure stands on, in cells."""
    energy: tuple[float, float] = (0.0, 0.0)
    """What a new unit has, and the most."""
    flies: bool = False
    cloaked: bool = False
    detection: float = 0.0
    creep: float = 0.0
    """How far it spreads creep, in cells."""
    works: bool = False
    """True for a worker."""
    armed: bool = True
    """False if the weapon of the tables is not its own: an ability or another unit fires it."""


def _house(life: float, shields: float = 0.0) -> Body:
    return Body(life, shields, 1.8125, 1.5)


def _hut(life: float, shields: float = 0.0, detection: float = 0.0) -> Body:
    return Body(life, shields, 1.125, 1.0, detection=detection)


def _tumor() -> Body:
    return Body(50, radius=0.5, half_width=0.5, cloaked=True, creep=10)


_CASTER = (50, 200)

BODIES: dict[str, Body] = {
    # Terran
    "AutoTurret": Body(100, radius=1.0, half_width=1.0),
    "Ghost": Body(100, energy=(75, 200)),
    "GhostAlternate": Body(100, energy=(75, 200)),
    "GhostNova": Body(100, energy=(75, 200)),
    "KD8Charge": Body(0, radius=0.25),
    "Liberator": Body(180, radius=0.75, flies=True),
    "LiberatorAG": Body(180, radius=0.75, flies=True),
    "PointDefenseDrone": Body(50, radius=0.625, flies=True),
    "Raven": Body(140, radius=0.625, energy=_CASTER, flies=True, detection=11),
    "Thor": Body(400, radius=1.0),
    "ThorAP": Body(400, radius=1.0),
    "WidowMine": Body(90, radius=0.5),
    "WidowMineBurrowed": Body(90, radius=0.5, cloaked=True),
    # Protoss
    "Adept": Body(70, 70),
    "Carrier": Body(300, 150, 1.25, flies=True),
    "Disruptor": Body(100, 100, 0.625),
    "HighTemplar": Body(40, 40, energy=_CASTER),
    "Immortal": Body(200, 100, 1.0),
    "Interceptor": Body(40, 40, 0.25, flies=True),
    "Mothership": Body(350, 350, 1.375, energy=_CASTER, flies=True),
    "MothershipCore": Body(130, 60, 0.875, energy=_CASTER, flies=True),
    "ObserverSiegeMode": Body(40, 20, 0.5, flies=True, cloaked=True, detection=13.75),
    "Oracle": Body(100, 60, 0.75, energy=_CASTER, flies=True, armed=False),
    "Phoenix": Body(120, 60, 0.75, energy=_CASTER, flies=True),
    "Probe": Body(20, 20, works=True),
    "Tempest": Body(200, 100, 1.125, flies=True),
    "VoidRay": Body(150, 100, 1.0, flies=True),
    "WarpPrism": Body(80, 100, 0.875, flies=True),
    "WarpPrismPhasing": Body(80, 100, 0.875, flies=True),
    "Assimilator": _house(300, 300),
    "CyberneticsCore": _house(550, 550),
    "DarkShrine": _hut(500, 500),
    "FleetBeacon": _house(500, 500),
    "Forge": _house(400, 400),
    "Gateway": _house(500, 500),
    "Nexus": Body(1000, 1000, 2.75, 2.5, energy=_CASTER),
    "OracleStasisTrap": Body(30, 30, 0.5, 0.5, cloaked=True),
    "PhotonCannon": _hut(150, 150, detection=11),
    "Pylon": _hut(200, 200),
    "RoboticsBay": _house(500, 500),
    "RoboticsFacility": _house(450, 450),
    "ShieldBattery": Body(150, 150, 1.125, 1.0, energy=(100, 100)),
    "Stargate": _house(600, 600),
    "TemplarArchive": _house(500, 500),
    "TwilightCouncil": _house(500, 500),
    "WarpGate": _house(500, 500),
    # Zerg
    "BanelingBurrowed": Body(30, cloaked=True),
    "BanelingCocoon": Body(50),
    "BroodLord": Body(225, radius=1.0, flies=True),
    "BroodLordCocoon": Body(200, radius=1.0, flies=True),
    "Broodling": Body(20),
    "Changeling": Body(5),
    "ChangelingMarine": Body(5, armed=False),
    "ChangelingMarineShield": Body(5, armed=False),
    "ChangelingZealot": Body(5, armed=False),
    "ChangelingZergling": Body(5, armed=False),
    "ChangelingZerglingWings": Body(5, armed=False),
    "Corruptor": Body(200, radius=0.625, flies=True),
    "Drone": Body(40, works=True),
    "DroneBurrowed": Body(40, cloaked=True),
    "Egg": Body(200, radius=0.5),
    "HydraliskBurrowed": Body(90, radius=0.625, cloaked=True),
    "Infestor": Body(90, radius=0.625, energy=(75, 200)),
    "InfestorBurrowed": Body(90, radius=0.625, energy=(75, 200), cloaked=True),
    "Larva": Body(25, radius=0.25),
    "LocustMP": Body(50),
    "LurkerMP": Body(190, radius=0.75, armed=False),
    "LurkerMPBurrowed": Body(190, radius=0.75, cloaked=True),
    "LurkerMPEgg": Body(100, radius=0.625),
    "Mutalisk": Body(120, radius=0.5, flies=True),
    "Overlord": Body(200, radius=1.0, flies=True),
    "OverlordCocoon": Body(200, radius=1.0, flies=True),
    "OverlordTransport": Body(200, radius=1.0, flies=True),
    "Overseer": Body(200, radius=1.0, energy=_CASTER, flies=True, detection=11),
    "OverseerSiegeMode": Body(200, radius=1.0, energy=_CASTER, flies=True, detection=13.75),
    "Queen": Body(175, radius=0.875, energy=(25, 200)),
    "QueenBurrowed": Body(175, radius=0.875, energy=(25, 200), cloaked=True),
    "Ravager": Body(120, radius=0.625),
    "RavagerBurrowed": Body(120, radius=0.625, cloaked=True),
    "RavagerCocoon": Body(100, radius=0.625),
    "RoachBurrowed": Body(145, radius=0.625, cloaked=True),
    "SwarmHostBurrowedMP": Body(160, radius=0.8125, cloaked=True),
    "SwarmHostMP": Body(160, radius=0.8125),
    "Ultralisk": Body(500, radius=1.0),
    "UltraliskBurrowed": Body(500, radius=1.0, cloaked=True),
    "Viper": Body(150, radius=1.0, energy=_CASTER, flies=True),
    "ZerglingBurrowed": Body(35, cloaked=True),
    "BanelingNest": _house(850),
    "CreepTumor": _tumor(),
    "CreepTumorBurrowed": _tumor(),
    "CreepTumorQueen": _tumor(),
    "EvolutionChamber": _house(750),
    "Extractor": _house(500),
    "GreaterSpire": _hut(1000),
    "Hatchery": Body(1500, radius=2.75, half_width=2.5),
    "Hive": Body(2500, radius=2.75, half_width=2.5),
    "HydraliskDen": _house(850),
    "InfestationPit": _house(850),
    "Lair": Body(2000, radius=2.75, half_width=2.5),
    "LurkerDenMP": _house(850),
    "NydusCanal": _hut(300),
    "NydusNetwork": _house(850),
    "RoachWarren": _house(850),
    "SpawningPool": _house(1000),
    "Spire": _hut(850),
    "SporeCrawler": _hut(400, detection=11),
    "UltraliskCavern": _house(850),
}
"""The body of each such type, by its name in the tables."""
