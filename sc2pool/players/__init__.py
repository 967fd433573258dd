"""The players: what plays the episodes of a task, a bot, a match or an env in a worker."""
