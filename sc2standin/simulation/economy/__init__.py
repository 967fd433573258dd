"""The economy of a map that has one; in a melee each player has its own economy.

    economy      money and supply; calls the other modules each loop
    workers/     gathering (`mining`), `building`, `repair`, and the ways of workers (`walking`)
    structures   production, research, tech labs and reactors, structures that fly, MULEs and scans
    morphs       zerglings that become banelings; tanks, vikings and hellions that change modes
    stimpacks    marines and marauders that are faster for a while
    offers       the abilities of a unit now

Workers on an errand walk around structures and cliffs, and through other units.
"""
