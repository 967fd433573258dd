"""`AsyncPPO`: PPO whose actor keeps acting while the learner updates the policy.

`learner.py` has the actor, a thread that steps the env, and `AsyncPPO.learn`.

    Actor:    observe ─ act ─ observe ─ act ─ observe ─ …
                     │ rollouts                ▲ weights
    Learner:         ▼                         │
    callbacks ─► update ───────────────────────┴─► callbacks ─► ….

`decoupled.py` has the update with PPO's loss, corrected for data of an older policy.
If `actor="process"`, `update_process.py` makes the update in a child process.
"""
