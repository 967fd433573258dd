"""Reinforcement learning in real time, on games that do not wait for actions.

gate.py              pauses any process tree
sb3.py               a callback for SB3 that pauses games during updates
rllib.py             a callback for RLlib that does the same
sample_timeout.py    checks if fragments in real time meet RLlib's time limit
acting/              the actor: a thread that steps the env while an algorithm learns
async_ppo/           PPO that acts during its updates
async_off_policy.py  SAC, TD3 and DQN that act during their updates
"""
