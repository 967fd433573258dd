"""Who plays the other side of a match: functions, policies, snapshots of the learner, bots."""
