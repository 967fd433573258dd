"""Fights: targets, attacks, damage and healing.

* File pairs: distances between units, nearest enemies, and how units give way. The file `_pairs`
  has the same code in compiled form.
* File combat: targets and shots. Bystanders are targets that do not fight: structures, and workers
  at work.
* File cloak: cloaked units and their detection.
* File damage: the damage of hits and explosions, medivacs, and the regeneration of units.
"""
