"""The economy of a map that has one; in a melee each player has its own economy.

    economy      money and supply; units that change type; calls of the other modules in each loop
    workers/     gathering (`mining`), `building` and repair
    structures   production, research, tech labs and reactors, structures that fly, MULEs and scans
    offers       the abilities that a unit can use now

Workers at work walk around structures and cliffs, and through other units.
"""
