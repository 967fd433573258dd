"""SMAC's scenarios as team tasks, with SMAC's own observation, state, actions and reward.

    scenarios     the units of both sides and the time limit of each map
    rules         SMAC's options
    battle        both sides' units in arrays, step by step, and the battle's outcome
    ground        the map's grids: where a unit can move
    actions       the available actions of each agent, and their commands
    features      the agents' observations, and the state
    battle_task   `BattleTask` and `SmacTask`, which use all of these, and a task for each scenario
    duel          `SmacDuel`, the same with a learner on either side
    scripted      SMAC's scripted player, which sees the whole battle, and one that sees as an agent

Observations, states and rewards follow SMAC's paper (https://arxiv.org/abs/1902.04043) and its
environment (https://github.com/oxwhirl/smac, `smac/env/starcraft2`). `tests/peers/compare_smac.py`
plays both side by side and compares them.
"""
