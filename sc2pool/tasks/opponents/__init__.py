"""The opponents in a match: functions, policies, snapshots of the learner, and bots."""
