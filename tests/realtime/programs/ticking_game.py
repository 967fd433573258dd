"""A live game: `ticking_game.py STATE_FILE`. The game plays 100 ticks a second.

At each tick the game writes the tick, the episode and the position into the file. Commands are
lines on its standard input. `begin` begins an episode at position 0. `move N` adds N to the
position at each tick until the next `move`. `freeze` stops the ticks. `exit N` exits with code N.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

state = {"episode": 0, "position": 0, "move": 0, "frozen": 0}


def obey() -> None:
    for line in sys.stdin:
        command, *number = line.split()
        if command == "begin":
            state.update(episode=state["episode"] + 1, position=0, move=0)
        elif command == "move":
            state["move"] = int(number[0])
        elif command == "freeze":
            state["frozen"] = 1
        else:
            os._exit(int(number[0]))
    os._exit(0)


threading.Thread(target=obey, daemon=True).start()
tick = 0
with Path(sys.argv[1]).open("r+b", buffering=0) as file:
    while True:
        time.sleep(0.01)
        if not state["frozen"]:
            tick += 1
            state["position"] += state["move"]
            file.seek(0)
            file.write(b"%9d %9d %9d\n" % (tick, state["episode"], state["position"]))
