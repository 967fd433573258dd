"""`AsyncPPO`: PPO whose actor keeps acting while the learner updates the policy.

actor.py      observe ─ act ─ observe ─ act ─ observe ─ act ─ …     a thread; it steps the env
                  │ rollouts                    ▲ weights
                  ▼                             │
learner.py    callbacks ─► update ──────────────┴─► callbacks ─► …  `AsyncPPO.learn`

decoupled.py       the update: PPO's loss, corrected for data of an older policy
update_process.py  the same update in a child process (`actor="process"`), both ends
"""
