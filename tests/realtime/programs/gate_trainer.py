"""Starts a program with a child process, pauses it, prints their pids, and waits to be killed."""

from __future__ import annotations

import json
import sys
import time

import psutil
from realtime_tasks import start_family

from sc2pool.realtime.gate import PauseGate

game = start_family(1)
gate = PauseGate(game.pid)
if sys.argv[1] != "never paused":
    gate.pause()
if sys.argv[1] == "resumed":
    gate.resume()
family = [game.pid, *(child.pid for child in psutil.Process(game.pid).children())]
print(json.dumps({"stage": "waiting", "children": family}), flush=True)
time.sleep(600)
