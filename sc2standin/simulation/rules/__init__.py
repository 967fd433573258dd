"""The rules of a map file: the places of units, and events in the game.

placement    the places of units, and the creep around tumors
mini_games   targets to collect, waves of enemies
battle       the scenarios of SMAC and SMACv2
"""
