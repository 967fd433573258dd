"""All unit types of the stand-in, as data.

    kinds    the fields of a type
    files    the types, read from the data files in this folder, and names for the types that rules
             need: workers, town halls, add-ons, modes
    liberty  the types of SMAC's scenarios

A script copies the numbers from the game's own data; the abilities are written by hand.
"""
