"""SMAC's scenarios as team tasks, with SMAC's own observation, state, actions and reward.

    scenarios     the units of both sides and the time limit of each map
    rules         SMAC's options
    battle        both sides' units in arrays, step by step, and how the battle ends
    ground        the map's grids: where a unit can move
    actions       which actions an agent has, and the commands they become
    features      what the agents see, and the state
    task          `SmacTask`, which puts them together, and a task for each scenario
    duel          `SmacDuel`, the same with a learner on either side
    heuristic     SMAC's scripted player, which sees the whole battle
    scripted      one that sees what an agent sees

The numbers are those of SMAC's paper (https://arxiv.org/abs/1902.04043) and of its environment
(https://github.com/oxwhirl/smac, `smac/env/starcraft2`); `tests/peers/compare_smac.py` plays both
side by side and compares them.
"""
