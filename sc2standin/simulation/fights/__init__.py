"""Fights: who attacks whom, and what comes of it.

pairs        who is near whom, who is hostile, and who gives way to whom
pair_loops   which loops over pairs are used; _pairs has the compiled ones
bystanders   structures and workers at work, which do not fight back
combat       targets and shots
damage       what a hit or an explosion takes
healing      medivacs
recovery     shields, life and energy that come back
"""
