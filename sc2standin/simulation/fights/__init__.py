"""Fights: targets, attacks, damage and healing.

* File pairs: distances of units, nearest enemies, and how units give way; compiled in `_pairs`.
* File combat: targets and shots. Bystanders are targets that do not fight, such as structures.
* File cloak: cloaked units and their detection.
* File damage: the damage of hits and explosions, medivacs, and the regeneration of units.
"""
