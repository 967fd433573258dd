"""Ids of the unit types of a town and its army."""

from __future__ import annotations

from sc2pool.units import unit_id

BARRACKS = unit_id("Barracks")
COMMAND_CENTER = unit_id("CommandCenter")
GEYSER = unit_id("VespeneGeyser")
MARINE = unit_id("Marine")
MINERAL_FIELD = unit_id("MineralField")
REFINERY = unit_id("Refinery")
SCV = unit_id("SCV")
SUPPLY_DEPOT = unit_id("SupplyDepot")
