"""The stand-in, which in real time stops answering when a game is over.

mute_game.py [the game's own command line]
"""

from __future__ import annotations

import math
import sys

from sc2standin.command import main
from sc2standin.process import server, session
from sc2standin.status import Status

wait_s = session.wait_s


def never_after_the_end(state, request):
    waits_s = wait_s(state, request)  # plays the loops that are due
    mute = state.status is Status.ENDED and state.setup.realtime
    return math.inf if mute else waits_s


server.session.wait_s = never_after_the_end
sys.exit(main(sys.argv[1:]))
