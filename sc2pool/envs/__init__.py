"""The pool's env classes, for Stable-Baselines3, gymnasium, PettingZoo, tianshou and SMAC."""
