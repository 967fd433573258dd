"""The economy of a map that has one; in a melee, each player has its own.

    economy      money and supply; asks the others each loop
    mining       workers that gather and bring back
    building     workers that put up structures
    repair       workers that give life back
    production   what structures make: units, add-ons, other structures, upgrades
    laboratory   what can be researched now
    add_ons      tech labs and reactors, and which structure they belong to
    flight       structures that lift off, fly and land
    morphs       zerglings that become banelings
    orbital      MULEs and scans
    modes        tanks that siege, vikings that land, hellions that become hellbats
    stimpacks    marines and marauders that are faster for a while
    offers       what a unit can do now
    walking      how workers walk on their errands
    jobs         what a unit does in it

Workers on an errand walk around structures and cliffs, and through other units.
"""
