"""SMACv2's random teams as team tasks, with SMACv2's own observation, state, actions and reward.

    config      the dictionary `capability_config`, and names for the numbers of observations
    teams       draws both sides' units and places, and creates them by debug commands
    task        `RandomTeamsTask`, and a task for each of SMACv2's scenarios

The rest is SMAC's, in `sc2pool.tasks.teams.smac`. Observations, states and rewards follow SMACv2's
paper (https://arxiv.org/abs/2212.07489) and its environment (https://github.com/oxwhirl/smacv2).
`tests/peers/compare_smacv2.py` plays both side by side and compares them.
"""
