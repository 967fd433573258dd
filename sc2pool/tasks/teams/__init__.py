"""SMAC's and SMACv2's team tasks: several agents in one game, each a row of the env.

* `scenarios` has the units and the time limit of each of SMAC's maps, and SMAC's options.
* `battle` has both sides' units step by step, the ground, the agents' actions and the outcome.
* `features` has the agents' observations and the state.
* `battle_task` has `BattleTask`, `SmacTask`, and `SmacDuel` for a match between two learners.
* `scripted` has SMAC's scripted player, which sees the whole battle, and one with an agent's view.
* `smacv2` has SMACv2's random teams, and a task for each scenario of SMACv2.
* `smac_battle` makes a task from the arguments of SMAC's and SMACv2's own classes.

SMAC's observations, states and rewards follow its paper (https://arxiv.org/abs/1902.04043) and its
environment (https://github.com/oxwhirl/smac, `smac/env/starcraft2`). SMACv2's tasks follow SMACv2's
paper (https://arxiv.org/abs/2212.07489) and environment (https://github.com/oxwhirl/smacv2).
`tests/peers/compare_smac.py` and `tests/peers/compare_smacv2.py` play these tasks and the originals
side by side and compare them.
"""
