"""What is played and how it looks to the learner: tasks, bots, the mini-games, the players."""
