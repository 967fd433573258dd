"""Reinforcement learning in real time, on games that do not wait for actions.

env.py               the base class for a live program as a gymnasium.Env
gate.py              pauses a game: stops its processes, or presses its pause key
sb3.py               a callback for SB3 that pauses games during updates
rllib.py             a callback for RLlib that does the same
sample_timeout.py    checks if fragments in real time meet RLlib's time limit
screen/              a game's window: display, keys, pictures
acting.py           the actor: a thread that steps the env while an algorithm learns
async_ppo/           PPO that acts during its updates
async_off_policy.py  SAC, TD3 and DQN that act during their updates
"""
