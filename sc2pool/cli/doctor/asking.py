"""Single requests to a game, each of which must be carried out and answered with sense.

What a pool asks in one burst the probes ask one by one, here; the replies are held to the same
rules (`protocol.replies`).
"""

from __future__ import annotations

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.game.game import Game
from sc2pool.protocol import replies, requests


async def ask(game: Game, request: sc_pb.Request) -> sc_pb.Response:
    """One request that must be carried out, unless the game has ended meanwhile.

    Raises:
        ConfigError: it can never be carried out.
        GameFault: the game failed, or refused it.
    """
    reply = await game.request(request)
    if not replies.is_game_over(reply):
        replies.require(reply, replies.expected_kind(request))
    return reply


async def observe(game: Game, game_loop: int | None = None) -> sc_pb.ResponseObservation:
    """The state now, or in real time once the game has come to `game_loop`.

    Raises:
        GameFault: the game failed, or the observation is not whole.
    """
    reply = await game.request(requests.observation(game_loop))
    replies.require(reply, "observation")
    replies.check_observation(reply.observation, first_loop=0, last_loop=replies.LAST_LOOP)
    return reply.observation
