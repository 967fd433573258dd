"""All known attacks on a pool, drawn at random for every adapter; see `scripts/chaos.py`.

The main script starts and watches `program.py` in a process of its own. That program plays rounds,
which `rounds.py` draws. In each round attacks act on a pool whose every result is checked.
"""
