"""RLlib on pools of games."""
