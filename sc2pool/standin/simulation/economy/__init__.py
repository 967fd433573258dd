"""The economy of a map that has one.

    economy      money and supply; asks the others each loop
    mining       workers that gather and bring back
    building     workers that put up structures
    production   structures that train units
    jobs         what a unit does in it

Workers on an errand walk straight, through other units and structures.
"""
