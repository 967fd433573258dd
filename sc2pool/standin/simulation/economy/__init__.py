"""The economy of a map that has one; in a melee, each player has its own.

    economy      money and supply; asks the others each loop
    mining       workers that gather and bring back
    building     workers that put up structures
    production   structures that train units
    walking      how workers walk on their errands
    jobs         what a unit does in it

Workers on an errand walk around structures and cliffs, and through other units.
"""
