"""The players: what plays the episodes of a task, a bot or an env, and what serves them."""
