"""What structures train that no map has: those of Protoss and Zerg, created by debug command.

The abilities are the game's, and so are the costs and times of the types in the tables. Larvae,
warp gates and workers of these races are not simulated.
"""

from __future__ import annotations

_HALLS = ("Hatchery", "Lair", "Hive")

_TRAINED = (
    (_HALLS, {1632: "Queen"}),
    (("Nexus",), {1006: "Probe", 110: "Mothership"}),
    (
        ("Gateway",),
        {
            **{916: "Zealot", 917: "Stalker", 919: "HighTemplar", 920: "DarkTemplar"},
            **{921: "Sentry", 922: "Adept"},
        },
    ),
    (
        ("Stargate",),
        {946: "Phoenix", 948: "Carrier", 950: "VoidRay", 954: "Oracle", 955: "Tempest"},
    ),
    (
        ("RoboticsFacility",),
        {976: "WarpPrism", 977: "Observer", 978: "Colossus", 979: "Immortal", 994: "Disruptor"},
    ),
)
TRAINED_BY_ABILITY = {ability: name for _by, units in _TRAINED for ability, name in units.items()}
"""The name of the unit that each ability trains."""
TRAINERS = {structure: tuple(units) for by, units in _TRAINED for structure in by}
"""The abilities of each structure, by its name."""
