"""Who plays the other side of a match: functions, trained policies, snapshots of the learner."""
