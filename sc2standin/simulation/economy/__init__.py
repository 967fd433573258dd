"""The economy of a map that has one; in a melee, each player has its own.

    economy      money and supply; asks the others each loop
    workers/     gathering (`mining`), `building`, `repair`, and how they walk (`walking`)
    structures/  what they make (`production`), what can be researched now (`laboratory`), tech labs
                 and reactors (`add_ons`), those that lift off and land (`flight`), MULEs and scans
                 (`orbital`)
    morphs       zerglings that become banelings
    modes        tanks that siege, vikings that land, hellions that become hellbats
    stimpacks    marines and marauders that are faster for a while
    offers       what a unit can do now
    jobs         what a unit does in it

Workers on an errand walk around structures and cliffs, and through other units.
"""
