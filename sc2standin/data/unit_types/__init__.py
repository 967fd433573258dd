"""All unit types of the stand-in, as data.

* File kinds: the class of a unit type, with its fields.
* File files: the types from the data files in this folder, and names for types that rules need.
* File liberty: the types of SMAC's scenarios.

A script copies the numbers from the game's own data. The abilities are written by hand.
"""
