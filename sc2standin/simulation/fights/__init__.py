"""Fights: targets, attacks, damage and healing.

pairs     distances between units, nearest enemies, and how units give way; compiled in `_pairs`
combat    targets and shots; bystanders are targets that do not fight (structures, busy workers)
cloak     cloaked units and their detection
damage    the damage of hits and explosions, medivacs, the regeneration of shields, life and energy
"""
