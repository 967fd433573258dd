"""All unit types of the stand-in, as data.

    kinds    the fields of a type
    files    the types, read from the data files in this folder: their numbers and abilities; and
             the types that rules name: workers, town halls, add-ons, modes
    liberty  the types of SMAC's scenarios

The numbers are written from the game's own data; the abilities of the types are written by hand.
"""
