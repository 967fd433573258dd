"""Probes of a stepped game: seeds, bursts, restarts, memory, the episode's end, the exit.

Rules: the game is asked through the same calls that the pool uses, where there is one, so what is
timed is what a pool waits for; single requests go through `Game.request`. What is compared was
played with the same actions.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple

from s2clientprotocol import debug_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.cli.doctor.asking import ask, observe
from sc2pool.cli.doctor.compare import beginning, first_difference
from sc2pool.cli.doctor.measurements import (
    Comparison,
    Durations,
    EpisodeEnd,
    Growth,
    HardReset,
    ProcessTest,
    Variety,
    YesNo,
)
from sc2pool.cli.doctor.notes import Notes
from sc2pool.cli.doctor.place import Playable
from sc2pool.cli.doctor.verdict import Unknown
from sc2pool.deadline import Deadline
from sc2pool.errors import FaultKind, GameFault
from sc2pool.game.game import Game, Rung
from sc2pool.protocol import replies, requests
from sc2pool.protocol.status import Status
from sc2pool.tasks import commands
from sc2pool.tasks.minigames.geometry import PlayableArea
from sc2pool.tasks.sc2_player import as_actions

STEP_MUL: Final = 8
SEED: Final = 20_240_601
STEPS_AFTER_RESTART: Final = 4
"""So many are compared with those after create_game, and played after each timed reset."""
LONG_STEP_LOOPS: Final = 240
LONGEST_EPISODE_LOOPS: Final = 14_400
"""The longest of the mini-games; an episode that lasts longer is ended by a command."""
OBSERVATIONS_AFTER_END: Final = 4
EXIT_S: Final = 5.0


class Played(NamedTuple):
    """Some steps of an episode."""

    observations: list[sc_pb.Observation]
    """The first one, and that of each step."""
    took_s: list[float]
    """Of each step."""


Play = Callable[[Game, sc_pb.Observation, PlayableArea, int], Coroutine[Any, Any, Played]]


async def probe(game: Game, playable: Playable, steps: int, resets: int, notes: Notes) -> None:
    """Everything that is known of a game by stepping it; at last the game is asked to exit."""
    await probe_seeds(game, playable, steps, notes)
    await probe_restarts(game, playable, resets, notes)
    await probe_end(game, playable, notes)
    await probe_exit(game, notes)


async def probe_seeds(game: Game, playable: Playable, steps: int, notes: Notes) -> None:
    """Plays one seed four times, in bursts and by single requests; restarts it; plays another."""
    creations_s: list[float] = []

    async def create(seed: int) -> tuple[sc_pb.Observation, PlayableArea]:
        with notes.trying("create+join"):
            begun_s = time.monotonic()
            await game.start_episode(*playable, seed)
            creations_s.append(time.monotonic() - begun_s)
            first = (await game.observe()).observation
            return first, PlayableArea.of(await game.game_info())

    runs: dict[Play, list[Played]] = {play_in_bursts: [], play_one_by_one: []}
    for play, name in 2 * ((play_in_bursts, "burst step"), (play_one_by_one, "single step")):
        first, area = await create(SEED)
        with notes.trying(name):
            runs[play].append(await play(game, first, area, steps))
            notes.put(name, Durations.of(t for run in runs[play] for t in run.took_s))
    note_comparisons(runs[play_in_bursts], runs[play_one_by_one], notes)

    reference = runs[play_in_bursts][0].observations[: STEPS_AFTER_RESTART + 1]
    with notes.trying("restart and seed"):
        await ask(game, requests.restart_game())
        first = (await observe(game)).observation
        again = (await play_one_by_one(game, first, area, STEPS_AFTER_RESTART)).observations
    other, _ = await create(SEED + 1)
    notes.put("seed", Variety(2, len({beginning(o) for o in (reference[0], other)})))
    if beginning(other) == beginning(reference[0]):
        notes.put("restart and seed", Unknown("this map begins the same under another seed too"))
    else:
        notes.put("restart and seed", Comparison(len(again), first_difference(reference, again)))
    notes.put("create+join", Durations.of(creations_s))


def note_comparisons(bursts: list[Played], singles: list[Played], notes: Notes) -> None:
    """Holds runs of the same seed and actions against each other."""
    compared = len(bursts[0].observations)
    same_way = first_difference(*(run.observations for run in bursts)) or first_difference(
        *(run.observations for run in singles)
    )
    notes.put("determinism", Comparison(2 * compared, same_way))
    if same_way:
        notes.put(
            "bursts", Unknown("the same seed does not give the same episode in the first place")
        )
        return
    between = first_difference(bursts[0].observations, singles[0].observations)
    notes.put("bursts", Comparison(compared, between))


async def play_in_bursts(
    game: Game, first: sc_pb.Observation, area: PlayableArea, steps: int
) -> Played:
    """Plays as sc2pool does: action, step and observation at once."""
    played = Played([first], [])
    for number in range(steps):
        actions = walk(played.observations[-1], area, number)
        begun_s = time.monotonic()
        step = await game.step(actions, STEP_MUL)
        played.took_s.append(time.monotonic() - begun_s)
        played.observations.append(step.observed.observation)
        if step.ended:
            break
    return played


async def play_one_by_one(
    game: Game, first: sc_pb.Observation, area: PlayableArea, steps: int
) -> Played:
    """Plays as other clients do: each request waits for the reply to the one before."""
    played = Played([first], [])
    for number in range(steps):
        actions = walk(played.observations[-1], area, number)
        begun_s = time.monotonic()
        if actions:
            await ask(game, requests.action(actions))
        await ask(game, requests.step(STEP_MUL))
        answer = await observe(game)
        played.took_s.append(time.monotonic() - begun_s)
        played.observations.append(answer.observation)
        if game.status is Status.ENDED:
            break
    return played


def walk(seen: sc_pb.Observation, area: PlayableArea, number: int) -> list[sc_pb.Action]:
    """The own units walk from one quarter of the area to the next: there is something to see."""
    tags = [unit.tag for unit in seen.raw_data.units if unit.alliance == raw_pb2.Self]
    if not tags:
        return []
    x = area.left + (0.25, 0.75)[number // 10 % 2] * (area.right - area.left)
    y = area.bottom + (0.25, 0.75)[number // 20 % 2] * (area.top - area.bottom)
    return as_actions([commands.move(tags, (x, y))])


async def probe_restarts(game: Game, playable: Playable, resets: int, notes: Notes) -> None:
    """Resets without a seed, as a pool does them: times, memory, beginnings."""
    beginnings = []
    took_s: list[float] = []
    hard_reset_after = None
    with notes.trying("restart"):
        await game.start_episode(*playable, None)
        beginnings.append(beginning((await game.observe()).observation))
        rss_bytes = game.rss_bytes()
        for number in range(1, resets + 1):
            begun_s = time.monotonic()
            rung = await game.start_episode(*playable, None)
            first = (await game.observe()).observation
            if rung is Rung.RESTART:
                took_s.append(time.monotonic() - begun_s)
            elif hard_reset_after is None and game.recycle_due:
                hard_reset_after = number - 1
            beginnings.append(beginning(first))
            for _ in range(STEPS_AFTER_RESTART):
                await game.step([], STEP_MUL)
        if took_s:
            notes.put("restart", Durations.of(took_s))
        else:
            notes.put("restart", Unknown("the game was never restarted, but created anew"))
    notes.put("memory growth", Growth(rss_bytes, game.rss_bytes(), resets))
    notes.put("restart variety", Variety(len(beginnings), len(set(beginnings))))
    notes.put("hard reset", HardReset(resets, hard_reset_after))


async def probe_end(game: Game, playable: Playable, notes: Notes) -> None:
    """Plays the episode to its end by single requests, and restarts the ended game."""
    with notes.trying("episode end"):
        by_command = not await play_on(game, LONGEST_EPISODE_LOOPS)
        if by_command:
            await game.request(debug(end_game=debug_pb2.DebugEndGame()))
            if not await play_on(game, LONG_STEP_LOOPS):
                notes.put("episode end", Unknown("the episode does not end"))
                notes.put("restart after end", Unknown("the episode does not end"))
                return
        further = None
        for number in range(OBSERVATIONS_AFTER_END):
            answer = await observe(game)
            if answer.player_result:
                further = number
                break
        game_loop = answer.observation.game_loop
        notes.put("episode end", EpisodeEnd(game_loop, further, by_command))
    with notes.trying("restart after end"):
        rung = await game.start_episode(*playable, None)
        await game.observe()
        notes.put("restart after end", YesNo(rung is Rung.RESTART))


async def play_on(game: Game, loops: int) -> bool:
    """Steps the game so far, or to its end; whether it has ended."""
    for _ in range(0, loops, LONG_STEP_LOOPS):
        # A game may say that it has ended, and in its status that it has not.
        over = replies.is_game_over(await ask(game, requests.step(LONG_STEP_LOOPS)))
        if over or game.status is Status.ENDED:
            return True
    return False


async def probe_exit(game: Game, notes: Notes) -> None:
    """Asks the game to exit; the game is of no use after that."""
    with notes.trying("exit on request"):
        begun_s = time.monotonic()
        deadline = Deadline.after(EXIT_S)
        exit_test = debug_pb2.DebugTestProcess(test=debug_pb2.DebugTestProcess.exit)
        request = debug(test_process=exit_test)
        ended, answer = False, "it answers as if nothing were"
        try:
            while not deadline.expired():
                reply = await game.request(request)
                if reply.error:
                    answer = "; ".join(reply.error)
                    break
                request = requests.ping()
                await asyncio.sleep(0.01)
        except GameFault as fault:
            ended, answer = fault.kind is FaultKind.GAME_EXITED, fault.detail.partition(";")[0]
        notes.put("exit on request", ProcessTest(ended, time.monotonic() - begun_s, answer))


def debug(**command: Any) -> sc_pb.Request:
    """A debug request with one command."""
    return sc_pb.Request(debug=sc_pb.RequestDebug(debug=[debug_pb2.DebugCommand(**command)]))
