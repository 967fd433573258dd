"""Fights: who attacks whom, and what comes of it.

pairs        who is near whom, and who is hostile
pair_loops   which loop over pairs is used; _pairs is the compiled one
bystanders   structures and workers at work, which do not fight back
combat       targets and shots
damage       what a hit or an explosion takes
healing      medivacs
recovery     shields, life and energy that come back
"""
