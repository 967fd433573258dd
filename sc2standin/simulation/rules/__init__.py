"""The rules of a map file: where units are placed, and what happens then.

placement    from the places of a map file to points
mini_games   targets to collect, waves of enemies
battle       the scenarios of SMAC
towns        how a melee begins
"""
