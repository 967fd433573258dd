"""The parts that every algorithm needs to act while it learns.

actor.py      the thread that steps the env
exchange.py   weights and gaps, between the actor's and the learner's threads
frozen.py     `VecNormalize`'s statistics, while the actor steps the env
late.py       actions for games whose policy is late
learner.py    the base class of the algorithms
"""
