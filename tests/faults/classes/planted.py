"""Makes an env in a folder that another user has prepared; run as `planted.py CLASS`."""

from __future__ import annotations

import subprocess
import sys
from subprocess import PIPE

from every_class import make

if __name__ == "__main__":
    name = sys.argv[1]
    if name == "PauseGate":
        from sc2pool.realtime.gate import PauseGate

        with subprocess.Popen([sys.executable, "-I", "-c", "input()"], stdin=PIPE) as game:
            with PauseGate(game.pid) as gate, gate.pausing():
                pass
            game.kill()
    else:
        env = make("SC2GymEnv", render_mode="human") if name == "page" else make(name)
        env.reset()
        env.close()
    print("played")
