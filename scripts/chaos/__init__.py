"""All known attacks on a pool, drawn at random for every adapter; see `scripts/chaos.py`.

rounds (pure: the draws) ─► play ─► arena (a checked pool) ◄─ attacks (a table, and folders)
                                 │
program (one process) ◄──────────┘ ◄── chaos.py (starts, watches and shrinks)
"""
