"""A melee: build a town, build marines, and destroy the opponent's town.

home      the learner's town on a map with cliffs and several bases
front     the learner's marines, and what is known of the opponent
melee     the task with a vector, images the one with an image
scripted  a player that needs no learning
"""
