"""Lets games and envs misbehave: at the next action, at a reply, or at the launch of a game."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

from chaos.arena import HARD_MEMORY_BYTES, Arena
from chaos.attacks import signals
from chaos.attacks.attack import Attack, needs
from tests.support.audit.audited.task import HARMS

HARMS_OF_GAMES = [
    *("fuzz", "close", "disconnect", "half a frame", "text", "garbage", "truncated", "empty"),
    *("duplicate", "swapped", "error", "wrong id", "spoiled state", "flood the socket"),
    *("flood the log", "leak", "fork", "ignore TERM", "spin"),
]
AT_A_REPLY = dict.fromkeys(HARMS_OF_GAMES, 1.0) | {"fuzz": 4.0, "half a frame": 0.3, "spin": 0.3}
"""Harms of `faulty_game.py` with weights, which are low if only a deadline detects the harm."""
SLOW = {"hang": 0.3, "block": 0.3}
"""The harms of an env's action that only a deadline detects, with their weights."""
AT_THE_LAUNCH = {"exit": 1.0, "hang": 0.2}


def by_action(arena: Arena, rng: Random, harm: int) -> None:
    """Let the next action of an env do this harm."""
    del rng
    if arena.adapter is not None:
        arena.adapter.harm = harm


def at_a_reply(arena: Arena, rng: Random, harm: str) -> None:
    """Let the next game that answers a step or begins an episode do this harm."""
    points = ["step"] * 3 if harm == "swapped" else ["step", "step", "first observation"]
    _order(
        arena,
        harm,
        rng.choice(points),
        seed=rng.randrange(2**32),
        frames=rng.choice([1, 100, 100_000]),
        seconds=rng.uniform(0.1, 3.0),
        bytes=2 * HARD_MEMORY_BYTES,
    )


def at_the_launch(arena: Arena, rng: Random, harm: str) -> None:
    """Kill a game, and let the next game do this harm instead of starting."""
    _order(arena, harm, "start", status=rng.randrange(3))
    signals.strike(arena, rng, "game", "KILL")


def _order(arena: Arena, harm: str, at: str, **more: Any) -> None:
    with suppress(OSError):  # if descriptors or the disk have run out, this attack is skipped
        arena.games.order(harm, at, **more)


ATTACKS = (
    {
        f"by action: {harm}": Attack(
            "game",
            partial(by_action, harm=number),
            weight=SLOW.get(harm, 1.0),
        )
        for number, harm in enumerate(HARMS)
        if number
    }
    | {
        f"at a reply: {harm}": Attack(
            "game", partial(at_a_reply, harm=harm), needs=needs("games"), weight=weight
        )
        for harm, weight in AT_A_REPLY.items()
    }
    | {
        f"at the launch: {harm}": Attack(
            "game", partial(at_the_launch, harm=harm), needs=needs("games"), weight=weight
        )
        for harm, weight in AT_THE_LAUNCH.items()
    }
)
