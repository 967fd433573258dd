"""Fights: targets, attacks, damage and healing.

pairs     distances of units, enemies, and units that give way to others; `_pairs` is compiled
combat    targets and shots, also at structures and workers at work (bystanders)
cloak     cloaked units and their detection
damage    the damage of hits and explosions, medivacs, the regeneration of shields, life and energy
"""
