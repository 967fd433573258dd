"""The faces of the pool: Stable-Baselines3's `VecEnv` and gymnasium's `Env`."""
