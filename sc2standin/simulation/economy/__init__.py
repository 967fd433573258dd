"""The economy of a map that has one; in a melee each player has its own economy.

* `economy`: money and supply, and units that change their type; calls the other files.
* `workers/`: gathering, building and repair.
* `structures`: production, research, add-ons, structures that fly, MULEs and scans.
* `offers`: the abilities that a unit can use now.

Workers at work walk around structures and cliffs, and through other units.
"""
