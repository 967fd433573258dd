"""`AsyncPPO`: PPO whose actor keeps acting while the learner updates the policy.

learner.py    actor: observe ─ act ─ observe ─ act ─ observe ─ …      a thread; it steps the env
                        │ rollouts                ▲ weights
                        ▼                         │
              callbacks ─► update ────────────────┴─► callbacks ─► …  `AsyncPPO.learn`

decoupled.py       the update: PPO's loss, corrected for data of an older policy
update_process.py  the same update in a child process (`actor="process"`): both processes' code
"""
