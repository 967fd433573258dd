"""Measures a stepped game: seeds, bursts of requests, restarts, memory, episode ends, and the exit.

Rules: if possible, this module makes the same calls as a pool, so that it measures a pool's times.
All other requests are sent by `Game.request`. Compared episodes are played with equal actions.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from s2clientprotocol import debug_pb2, raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool import commands
from sc2pool.deadline import Deadline
from sc2pool.doctor import checks
from sc2pool.doctor.findings import Findings
from sc2pool.doctor.lab import debug_request, end_game
from sc2pool.doctor.machine import Playable
from sc2pool.errors import FaultKind, GameFault
from sc2pool.foreign import printable
from sc2pool.game.game import Game, ResetKind
from sc2pool.pool.measures import Durations
from sc2pool.protocol import replies, requests
from sc2pool.protocol.replies import Status
from sc2pool.tasks.minigames.geometry import PlayableArea

STEP_MUL: Final = 8
SEED: Final = 20_240_601
STEPS_AFTER_RESTART: Final = 4
"""How many steps follow a timed reset; with a seed, they are compared to the first episode's."""
LONG_STEP_LOOPS: Final = 240
LONGEST_EPISODE_LOOPS: Final = 14_400
"""Length of the longest mini-game in loops; a debug command ends a longer episode."""
OBSERVATIONS_AFTER_END: Final = 4
EXIT_S: Final = 5.0


async def probe(
    game: Game, playable: Playable, steps: int, resets: int, findings: Findings
) -> None:
    """Make all measurements of a stepped game; at the end, ask the game to exit."""
    await _probe_seeds(game, playable, steps, findings)
    await _probe_restarts(game, playable, resets, findings)
    await _probe_end(game, playable, findings)
    await _probe_exit(game, findings)


def durations(samples_s: Sequence[float]) -> tuple[int, float, float, float, float]:
    """Number, first value, median, 95th percentile and maximum of at least one sample."""
    figures = Durations.of(samples_s)
    return figures.count, samples_s[0], figures.p50, figures.p95, figures.max


async def _ask(game: Game, request: sc_pb.Request) -> sc_pb.Response:
    """Send a request, and raise an error if a game that has not ended refuses it."""
    reply = await game.request(request)
    if not replies.is_game_over(reply):
        replies.require(reply, replies.expected_kind(request))
    return reply


async def observe(game: Game, game_loop: int | None = None) -> sc_pb.ResponseObservation:
    """The current state; in real time, if `game_loop` is given, the state of that loop.

    An observation with the game's result may be a stub, that is, without a state.
    """
    reply = await game.request(requests.observation(game_loop))
    replies.require(reply, "observation")
    answer = reply.observation
    if not answer.player_result or not replies.is_stub(answer):
        replies.check_observation(answer, first_loop=0, last_loop=replies.LAST_LOOP)
    return answer


# ---- seeds and bursts ---------------------------------------------------------------------------


class Played(NamedTuple):
    """The observations of some steps of an episode, and the steps' durations."""

    observations: list[sc_pb.Observation]
    """The first observation, and one for each step."""
    took_s: list[float]
    """Duration of each step."""


async def _probe_seeds(game: Game, playable: Playable, steps: int, findings: Findings) -> None:
    """Play one seed four times, two of them in bursts; then restart, and play another seed."""
    creations_s: list[float] = []

    async def create(seed: int) -> tuple[sc_pb.Observation, PlayableArea]:
        with findings.trying(checks.create_join):
            begun_s = time.monotonic()
            await game.start_episode(*playable, seed)
            creations_s.append(time.monotonic() - begun_s)
            first = (await game.observe()).observation
            return first, PlayableArea.of(await game.game_info())

    in_bursts: list[Played] = []
    one_by_one: list[Played] = []
    for check, played in 2 * ((checks.burst_step, in_bursts), (checks.single_step, one_by_one)):
        first, area = await create(SEED)
        with findings.trying(check):
            played.append(await _play(game, first, area, steps, burst=played is in_bursts))
            findings.note(check, *durations([t for each in played for t in each.took_s]))
    _compare(in_bursts, one_by_one, findings)

    reference = in_bursts[0].observations[: STEPS_AFTER_RESTART + 1]
    with findings.trying(checks.restart_and_seed):
        await _ask(game, requests.restart_game())
        first = (await observe(game)).observation
        again = (await _play(game, first, area, STEPS_AFTER_RESTART, burst=False)).observations
    other, _ = await create(SEED + 1)
    distinct = len({beginning(reference[0]), beginning(other)})
    findings.note(checks.seed, 2, distinct)
    if distinct == 1:
        reason = "this map begins the same under another seed too"
        findings.note_unknown(checks.restart_and_seed, reason)
    else:
        difference = first_difference(reference, again)
        findings.note(checks.restart_and_seed, len(again), difference)
    findings.note(checks.create_join, *durations(creations_s))


def _compare(bursts: Sequence[Played], singles: Sequence[Played], findings: Findings) -> None:
    """Compare episodes that were played with the same seed and actions."""
    compared = len(bursts[0].observations)
    difference = first_difference(*(run.observations for run in bursts)) or first_difference(
        *(run.observations for run in singles)
    )
    findings.note(checks.determinism, 2 * compared, difference)
    if difference:
        reason = "the same seed does not give the same episode, so bursts cannot be compared"
        findings.note_unknown(checks.bursts, reason)
    else:
        difference = first_difference(bursts[0].observations, singles[0].observations)
        findings.note(checks.bursts, compared, difference)


async def _play(
    game: Game, first: sc_pb.Observation, area: PlayableArea, steps: int, *, burst: bool
) -> Played:
    """Play some steps, in bursts as sc2pool does, or in single requests as other clients do."""
    played = Played([first], [])
    for number in range(steps):
        actions = _walk(played.observations[-1], area, number)
        begun_s = time.monotonic()
        if burst:
            step = await game.step(actions, STEP_MUL)
            observation, ended = step.observed.observation, step.ended
        else:
            if actions:
                await _ask(game, requests.action(actions))
            await _ask(game, requests.step(STEP_MUL))
            observation = (await observe(game)).observation
            ended = game.status is Status.ENDED
        played.took_s.append(time.monotonic() - begun_s)
        played.observations.append(observation)
        if ended:
            break
    return played


def _walk(seen: sc_pb.Observation, area: PlayableArea, number: int) -> list[sc_pb.Action]:
    """An action that moves the own units to the area's next quarter, so that the states change."""
    tags = [unit.tag for unit in seen.raw_data.units if unit.alliance == raw_pb2.Self]
    if not tags:
        return []
    x = area.left + (0.25, 0.75)[number // 10 % 2] * (area.right - area.left)
    y = area.bottom + (0.25, 0.75)[number // 20 % 2] * (area.top - area.bottom)
    return commands.as_actions([commands.move(tags, (x, y))])


# ---- restarts and ends --------------------------------------------------------------------------


async def _probe_restarts(game: Game, playable: Playable, resets: int, findings: Findings) -> None:
    """Reset without a seed, as a pool does; record times, memory and the first states."""
    took_s: list[float] = []
    hard_reset_after = None
    with findings.trying(checks.restart):
        await game.start_episode(*playable, None)
        beginnings = [beginning((await game.observe()).observation)]
        rss_bytes = game.process.rss_bytes()
        for number in range(resets):
            begun_s = time.monotonic()
            kind = await game.start_episode(*playable, None)
            first = (await game.observe()).observation
            if kind is ResetKind.RESTART:
                took_s.append(time.monotonic() - begun_s)
            elif hard_reset_after is None and game.recycle_due:
                hard_reset_after = number
            beginnings.append(beginning(first))
            for _ in range(STEPS_AFTER_RESTART):
                await game.step([], STEP_MUL)
        if took_s:
            findings.note(checks.restart, *durations(took_s))
        else:
            reason = "the game was never restarted: each reset created a new game"
            findings.note_unknown(checks.restart, reason)
    findings.note(checks.memory_growth, rss_bytes, game.process.rss_bytes(), resets)
    findings.note(checks.restart_variety, len(beginnings), len(set(beginnings)))
    findings.note(checks.hard_reset, resets, hard_reset_after)


async def _probe_end(game: Game, playable: Playable, findings: Findings) -> None:
    """Play the current episode to its end by single requests, then restart the ended game."""
    with findings.trying(checks.episode_end):
        by_command = not await _play_on(game, LONGEST_EPISODE_LOOPS)
        if by_command:
            await game.request(debug_request(end_game()))
            if not await _play_on(game, LONG_STEP_LOOPS):
                for check in (checks.episode_end, checks.restart_after_end):
                    findings.note_unknown(check, "the episode does not end")
                return
        further = None
        for number in range(OBSERVATIONS_AFTER_END):
            answer = await observe(game)
            if answer.player_result:
                further = number
                break
        ended_at = answer.observation.game_loop if not replies.is_stub(answer) else game.loop_seen
        findings.note(checks.episode_end, ended_at, further, by_command)
    with findings.trying(checks.restart_after_end):
        kind = await game.start_episode(*playable, None)
        await game.observe()
        findings.note(checks.restart_after_end, kind is ResetKind.RESTART)


async def _play_on(game: Game, loops: int) -> bool:
    """Step the game this many loops or to its end; return whether it has ended."""
    for _ in range(0, loops, LONG_STEP_LOOPS):
        # A reply may say that the game has ended although the game's status does not say so.
        over = replies.is_game_over(await _ask(game, requests.step(LONG_STEP_LOOPS)))
        if over or game.status is Status.ENDED:
            return True
    return False


async def _probe_exit(game: Game, findings: Findings) -> None:
    """Ask the game to exit; the game cannot be used afterwards."""
    with findings.trying(checks.exit_on_request):
        begun_s = time.monotonic()
        deadline = Deadline.after(EXIT_S)
        exit_test = debug_pb2.DebugTestProcess(test=debug_pb2.DebugTestProcess.exit)
        request = debug_request(debug_pb2.DebugCommand(test_process=exit_test))
        ended, answer = False, "it answers as before"
        try:
            while not deadline.expired():
                reply = await game.request(request)
                if reply.error:
                    answer = printable("; ".join(reply.error))
                    break
                request = requests.ping()
                await asyncio.sleep(0.01)
        except GameFault as fault:
            ended, answer = fault.kind is FaultKind.GAME_EXITED, fault.detail.partition(";")[0]
        findings.note(checks.exit_on_request, ended, time.monotonic() - begun_s, answer)


# ---- comparing episodes -------------------------------------------------------------------------

Leaf = tuple[str, Any]
"""The path of a field, and its value."""


def first_difference(ours: Sequence[sc_pb.Observation], theirs: Sequence[sc_pb.Observation]) -> str:
    """A text with the first difference between two episodes; empty if they are the same.

    A new game may give the same unit another tag. So each tag is replaced by a number, in the order
    in which the tags appear. All other values must be identical.
    """
    our_tags: dict[int, int] = {}
    their_tags: dict[int, int] = {}
    for index, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        pairs = zip_longest(
            _leaves(one, our_tags), _leaves(other, their_tags), fillvalue=("", "nothing")
        )
        for mine, yours in pairs:
            if mine != yours:
                return f"observation {index}, {_differing(mine, yours)}"
    if len(ours) != len(theirs):
        return f"{len(ours)} observations on one side, {len(theirs)} on the other"
    return ""


def beginning(observation: sc_pb.Observation) -> tuple[Leaf, ...]:
    """An observation's values as a hashable tuple, with tags replaced by consecutive numbers."""
    return tuple(_leaves(observation, {}))


def _leaves(message: Any, tags: dict[int, int], path: str = "") -> Iterator[Leaf]:
    """Yield each value of a message with its path; `tags` numbers the tags that were found."""
    for field_, value in message.ListFields():
        here = f"{path}.{field_.name}" if path else field_.name
        repeated = not isinstance(value, str | bytes) and hasattr(value, "__len__")
        for index, one in enumerate(value if repeated else (value,)):
            place = f"{here}[{index}]" if repeated else here
            if field_.message_type is not None:
                yield place, "present"
                yield from _leaves(one, tags, place)
            elif field_.type == field_.TYPE_UINT64 and one:  # only tags have this type; 0 is no tag
                yield place, tags.setdefault(one, len(tags) + 1)
            else:
                yield place, one


def _differing(mine: Leaf, yours: Leaf) -> str:
    if mine[0] == yours[0]:
        values = [f"{len(v)} bytes" if isinstance(v, bytes) else str(v) for _, v in (mine, yours)]
        return f"{mine[0]}: {values[0]} and {values[1]}"
    return f"{mine[0] or 'its end'} on one side, {yours[0] or 'its end'} on the other"
