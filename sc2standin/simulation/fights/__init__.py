"""Fights: targets, attacks, damage and healing.

pairs     distances of units, enemies, and units that give way to others; compiled in `_pairs`
combat    targets and shots; bystanders are targets that do not fight (structures, busy workers)
cloak     cloaked units and their detection
damage    the damage of hits and explosions, medivacs, the regeneration of shields, life and energy
"""
