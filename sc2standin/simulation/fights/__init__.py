"""Fights: targets, attacks, damage and healing.

pairs        distances of units, enemies, and units that give way to others
pair_loops   the choice between the loops over pairs in Python and the compiled ones (_pairs)
combat       targets and shots, also at structures and workers at work (bystanders)
cloak        cloaked units and their detection
damage       the damage of hits and explosions
healing      medivacs, and the regeneration of shields, life and energy
"""
