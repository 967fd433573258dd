"""The player of an `RLBotAI` that plays alone, or against the game's own computer.

Three things differ from python-sc2's own loop: actions, step and observation are sent as one burst
instead of four round trips; the map's description is fetched again only if the bot sees other
structures than before, not every step; the bot sees the episode's final state.
"""

from __future__ import annotations

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.tasks.player import Episode
from sc2pool.tasks.players.bots.client import GameClient
from sc2pool.tasks.players.bots.driven_bot import DrivenBot, SharedData, new_bot, no_transition
from sc2pool.tasks.players.driven_task import note_delay
from sc2pool.tasks.players.replays import LastHeld
from sc2pool.tasks.players.sc2_player import SC2Player
from sc2pool.tasks.players.task_spec import TaskSpec
from sc2pool.tasks.queue_pair import QueuePair


class BotPlayer(SC2Player):
    """Plays an `RLBotAI`."""

    def __init__(self, spec: TaskSpec) -> None:
        super().__init__(spec)
        self._shared = SharedData()

    async def play_episode(self, episode: Episode, pair: QueuePair) -> None:
        held = LastHeld(pair)
        await self._play_bot(episode, held)
        (last,) = held.last
        pair.put(self.with_outcome(last))

    async def _play_bot(self, episode: Episode, pair: QueuePair) -> None:
        game = self.game
        first = await self.start_episode(episode)
        game_info = await game.game_info()
        self.task = bot = new_bot(self.spec.task, pair)
        self.prepare(bot, episode, self.attributes)
        client = GameClient(game)
        driven = DrivenBot(bot, game, client, self._shared)
        await driven.start(first, game_info)
        while not bot.episode_over:
            orders = await driven.turn()
            if not bot._rules.begun:
                raise no_transition(bot, "on_step")
            if bot.episode_over:
                break
            step = await game.step(orders, bot.step_mul)
            note_delay(bot, game.tick)
            if client.has_left and not step.ended:  # the game has not heeded the surrender
                step = step._replace(ended=True)
                game.result = sc_pb.Defeat
            await driven.see(step)
            if step.ended:
                await driven.end(game.result)
                if not bot.episode_over:
                    raise no_transition(bot, "on_end")
        await driven.cut()
