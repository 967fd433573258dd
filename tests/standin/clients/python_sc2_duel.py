"""Lets python-sc2 start two bots that play each other, and prints the results as JSON.

    python python_sc2_duel.py run_game PORTS REPLAY [--realtime]
    python python_sc2_duel.py run_multiple_games PORTS REPLAY
    python python_sc2_duel.py host PORTS REPLAY [--leaves]    One game process plays two episodes.
    python python_sc2_duel.py guest PORTS REPLAY      The bot is the other player of `host`.

One bot attacks, and the other bot waits; with `--leaves`, the attacker gives up instead.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from sc2 import maps
from sc2.bot_ai import BotAI
from sc2.data import Race, Result
from sc2.main import GameMatch, _host_game_aiter, _join_game, a_run_multiple_games, run_game
from sc2.player import Bot
from sc2.portconfig import Portconfig

SEED = 5
EPISODES = 2
OTHER_QUITS_S = 30.0


class Fighter(BotAI):
    """A bot that attacks, waits or leaves."""

    seen: ClassVar[list[dict[str, Any]]] = []
    together: asyncio.Barrier | None = None
    """A barrier at which the bots of both players of `run_game` wait at the end."""

    def __init__(self, manner: str) -> None:
        super().__init__()
        self.manner = manner

    async def on_start(self) -> None:
        # In real time python-sc2 repeats its request if an observation is late.
        # After the end a repeated request fails, because a game reports its results only once.
        # Therefore steps in real time are long (24 loops).
        self.client.game_step = 24 if self.realtime else 8
        enemies = [list(point) for point in self.enemy_start_locations]
        self.seen.append({"player": self.player_id, "marines": len(self.units), "enemy": enemies})

    async def on_step(self, iteration: int) -> None:
        if self.manner == "leaves" and iteration == 3:
            await self.client.leave()
        elif self.manner == "attacks":
            for unit in self.units:
                near = self.enemy_units
                unit.attack(near.closest_to(unit) if near else self.game_info.map_center)

    async def on_end(self, game_result: Result) -> None:
        """Wait for the other player, then quit: python-sc2 kills both games when one has quit."""
        del game_result
        if self.together is None:
            return
        together, quit_alone = self.together, self.client.quit

        async def quit_together() -> None:
            with suppress(TimeoutError):  # if the other player failed, `run_game` raises its error
                await asyncio.wait_for(together.wait(), OTHER_QUITS_S)
            await quit_alone()

        self.client.quit = quit_together


def bots(first: str) -> list[Bot]:
    return [Bot(Race.Terran, Fighter(first)), Bot(Race.Terran, Fighter("waits"))]


async def host(ports: Portconfig, manner: str) -> list[str]:
    games = _host_game_aiter(maps.get("MarineDuel"), bots(manner), False, ports)
    results = [(await games.asend(bots(manner) if n else None)).name for n in range(EPISODES)]
    await games.aclose()
    return results


async def guest(ports: Portconfig, manner: str) -> list[str]:
    return [(await _join_game(bots(manner), False, ports)).name for _ in range(EPISODES)]


def main() -> None:
    how, ports, replay, *flags = sys.argv[1:]
    first = "leaves" if "--leaves" in flags else "attacks"
    played, realtime = maps.get("MarineDuel"), "--realtime" in flags
    if how == "run_game":
        players = bots(first)
        together = asyncio.Barrier(2)
        for player in players:
            player.ai.together = together
        found = run_game(played, players, realtime, save_replay_as=replay, random_seed=SEED)
        results = [getattr(result, "name", repr(result)) for result in found]
    elif how == "run_multiple_games":
        matches = [GameMatch(played, bots(first), random_seed=SEED) for _ in range(EPISODES)]
        games = asyncio.run(a_run_multiple_games(matches))
        results = [result.name for game in games for result in game.values()]
    else:
        play = host if how == "host" else guest
        results = asyncio.run(play(Portconfig.from_json(ports), first))
    print(json.dumps({"results": results, "seen": Fighter.seen, "saved": Path(replay).exists()}))


if __name__ == "__main__":
    main()
