"""Reinforcement learning in real time, on games that do not wait for actions.

`env.py` has the base class that turns a live program into a `gymnasium.Env`.
`gate.py` pauses a game: it stops the game's processes, or presses the game's pause key.
`sb3.py` has a callback for SB3 that pauses games during updates.
`rllib.py` has a callback for RLlib that pauses games during updates.
`sample_timeout.py` checks if fragments in real time meet RLlib's time limit.
`screen/` has the window of a game: its display, keys and pictures.
`acting.py` has the actor: a thread that steps the env while an algorithm learns.
`async_ppo/` has a PPO that acts during its updates.
`async_off_policy.py` has SAC, TD3 and DQN that act during their updates.
"""
