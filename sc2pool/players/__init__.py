"""The players: objects in a worker that play the episodes of a task, a bot, a match or an env."""
