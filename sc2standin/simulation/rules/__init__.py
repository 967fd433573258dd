"""The rules of a map file: the places of units, and events in the game.

placement    points for the places of a map file
mini_games   targets to collect, waves of enemies
battle       the scenarios of SMAC and SMACv2
creep        the creep around tumors
towns        the towns of a melee at its beginning
"""
