"""SMACv2's random teams as team tasks, with SMACv2's own observation, state, actions and reward.

    config      the dictionary `capability_config`, checked
    teams       what is drawn for a battle: the units of both sides, and where they begin
    spawn       the units on the map, by debug commands
    task        `RandomTeamsTask`, and a task for each of SMACv2's scenarios
    names       what each number of an observation and of the state is

The rest is SMAC's, in `sc2pool.tasks.teams.smac`. The numbers are those of SMACv2's paper
(https://arxiv.org/abs/2212.07489) and of its environment (https://github.com/oxwhirl/smacv2);
`tests/peers/compare_smacv2.py` plays both side by side and compares them.
"""
