"""The env classes of the pool: Stable-Baselines3's `VecEnv`, gymnasium's `Env` and `VectorEnv`."""
