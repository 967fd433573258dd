"""Reinforcement learning on games that run by themselves, in real time.

gate.py            pause any process tree
sb3.py             SB3's callback that pauses games during updates
rllib.py           RLlib's callback that does the same
sample_timeout.py  whether fragments in real time meet RLlib's time limit
async_ppo/         PPO that acts during its updates
"""
