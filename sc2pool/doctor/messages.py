"""Measures single messages: delays of actions, ids, replays, and warnings that are no refusals.

Rule: `measure_warnings` is the last measurement of an examination, because it reports the counts
of all replies in the `Ledger`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypedDict

from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool import commands
from sc2pool.doctor.findings import Judgement, Section, differs, expect, ok
from sc2pool.doctor.lab import (
    WORKERS,
    Client,
    Lab,
    debug_request,
    end_game,
    refusal,
    start_replay,
    units_of,
)
from sc2pool.protocol import requests
from sc2pool.protocol.replies import Status

MESSAGES = Section("messages", needed=False)
_FEW: Final = 3


class Replayed(TypedDict):
    """An attempt to save or start a replay."""

    what: str
    outcome: str
    expected: bool


@MESSAGES.check("D19 action delay", "how many loops until an action is observed?")
def action_delay(loops: Mapping[str, int | None]) -> Judgement:
    """Judge, for each kind of game, the loops until an action is observed; None means never."""
    told = [f"{where}: {'never' if one is None else one}" for where, one in loops.items()]
    return expect(
        None not in loops.values(), ", ".join(told), "actions are lost: look at the game's log"
    )


@MESSAGES.check("D26 ids", "does a reply have the id of its request?")
def ids(returned: Mapping[str, int | None], mistaken: Mapping[str, int]) -> Judgement:
    """Judge the ids of replies; `returned` maps each request's id to its reply's id.

    `mistaken` counts the replies that do not fit their request, by a description of the misfit.
    """
    told = [f"{asked} → {'none' if got is None else got}" for asked, got in returned.items()]
    odd = [f"{count} × {what}" for what, count in mistaken.items()]
    lost = any(asked.isdigit() and got != int(asked) for asked, got in returned.items())
    return expect(
        not odd and not lost,
        "; ".join([*odd, ", ".join(told)]),
        "replies can be matched by their order only",
    )


@MESSAGES.check("D27 replays", "can replays be saved and started?")
def replays(measured: Sequence[Replayed]) -> Judgement:
    figure = "; ".join(f"{one['what']}: {one['outcome']}" for one in measured)
    return expect(
        all(one["expected"] for one in measured),
        figure,
        "replays cannot be relied upon; sc2pool replay may fail",
    )


@MESSAGES.check(
    "D18 warnings", "are there texts in Response.error beside a reply that did its work?"
)
def warnings(
    replies: int, texts: Mapping[str, int], answers: Mapping[str, Mapping[str, str]]
) -> Judgement:
    """Judge how often each text in `Response.error` came, over all replies of an examination.

    For each status and kind of request, `answers` has "answered" or the text of the game's refusal.
    """
    refused = sum(words != "answered" for kinds in answers.values() for words in kinds.values())
    asked = sum(map(len, answers.values()))
    figure = f"{replies:,} replies; {refused} of {asked} kinds of request are refused in a status"
    if not texts:
        return ok(f"no, in {figure}")
    most = sorted(texts.items(), key=lambda item: -item[1])
    listed = "; ".join(f"{count} × {text}" for text, count in most[:_FEW])
    return differs(
        f"yes, in {sum(texts.values())} of {figure}: {listed}{'; …' * (len(most) > _FEW)}",
        "such a text is a warning, and the reply counts",
    )


_MOST_LOOPS: Final = 30
_PLAIN: Final = "the player's view"
_ROUNDS: Final = 200
_WARNINGS_S: Final = 20.0
_IDS: Final = (None, 0, (1 << 32) - 1)


# ---- delays (D19) -------------------------------------------------------------------------------


async def measure_action_delays(lab: Lab) -> None:
    """In three kinds of games, order a unit to move, and step until the order is observed."""
    client = await lab.launch()
    delays: dict[str, int | None] = {}
    await client.begin(*lab.mini())
    delays["one client"] = await _delay(client, lambda: client.step(1))
    await client.begin(*lab.mini(realtime=True))
    delays["real time"] = await _delay(client, lambda: asyncio.sleep(0.01))
    if lab.melee_map is not None:
        pair = await lab.pair()
        await pair.begin(*lab.melee(participants=2))
        delays["match"] = await _delay(pair.host, lambda: pair.step(1))
    lab.findings.note(action_delay, delays)


async def _delay(client: Client, advance: Callable[[], Awaitable[object]]) -> int | None:
    """The number of loops until an observation shows a unit's new order; None if it never does."""
    seen = await client.observe()
    own = units_of(seen, raw_pb2.Self)
    unit = next((one for one in own if one.unit_type in WORKERS), own[-1])
    before = [order.ability_id for order in unit.orders]
    target = unit.pos.x + 3.0, unit.pos.y + 3.0
    walk = commands.move([unit.tag], target)
    await client.ask(requests.action(commands.as_actions([walk])))
    began = seen.observation.game_loop
    until_s = time.monotonic() + 3.0
    while time.monotonic() < until_s:
        await advance()
        now = (await client.observe()).observation
        orders = {one.tag: [order.ability_id for order in one.orders] for one in now.raw_data.units}
        if orders.get(unit.tag, before) != before:
            return now.game_loop - began
        if now.game_loop > began + _MOST_LOOPS:
            break
    return None


# ---- ids (D26) ----------------------------------------------------------------------------------


async def measure_ids(lab: Lab) -> None:
    """Send requests without an id, with the smallest id and with the largest id."""
    client = await lab.launch()
    returned: dict[str, int | None] = {}
    for number in _IDS:
        request = requests.ping()
        if number is not None:
            request.id = number
        client.post(request, numbered=False)
        reply = await client.reply(5.0)
        got = reply.id if reply is not None and reply.HasField("id") else None
        returned["none" if number is None else str(number)] = got
    lab.findings.note(ids, returned, dict(lab.ledger.mistaken))


# ---- replays (D27) ------------------------------------------------------------------------------


async def measure_replays(lab: Lab) -> None:
    """Save replays in several states, and start a replay with several options."""
    client = await lab.launch()
    measured: list[Replayed] = []

    async def save(where: str, *, works: bool) -> bytes:
        reply = await client.ask(requests.save_replay())
        data: bytes = reply.save_replay.data
        outcome = refusal(reply) or f"{len(data):,} bytes"
        measured.append(
            Replayed(what=f"saved {where}", outcome=outcome, expected=bool(data) == works)
        )
        return data

    await save("after the launch", works=False)
    await client.begin(*lab.mini())
    await client.step(400)
    await save("in a game", works=True)
    await client.debug(end_game())
    await client.step(2)
    content = await save("after the end", works=True)
    for what, player, disable_fog, realtime in (
        (_PLAIN, 1, False, False),
        ("disable_fog", 1, True, False),
        ("player 0", 0, False, False),
        ("real time", 1, False, True),
    ):
        start = start_replay(content, player, disable_fog=disable_fog, realtime=realtime)
        await client.leave()
        reply = await client.ask(start, 60.0)
        outcome = refusal(reply) or await _watched(client, realtime=realtime)
        works = what != _PLAIN or not refusal(reply)
        measured.append(Replayed(what=f"started with {what}", outcome=outcome, expected=works))
    await save("of a replay", works=False)
    lab.findings.note(replays, measured)


async def _watched(client: Client, *, realtime: bool) -> str:
    """A text on the progress of a started replay."""
    if realtime:
        before = await client.loop()
        await asyncio.sleep(0.5)
        return f"+{await client.loop() - before} loops in 0.5 s without a step"
    last = await client.step_to_end(1_000, at_a_time=100)
    return f"it ends within {last} loops" if last else "it does not end"


# ---- texts beside good replies (D18) ------------------------------------------------------------


async def measure_warnings(lab: Lab) -> None:
    """Send requests of many kinds in every status of a game, then repeat them in a running game."""
    client = await lab.launch()
    setup, path = lab.mini()
    answers: dict[str, dict[str, str]] = {}

    async def ask_everything() -> None:
        status = client.status.name.lower()
        answers[status] = {
            kind: refusal(await client.ask(request, 60.0)) or "answered"
            for kind, request in _everything().items()
        }

    await ask_everything()
    await client.create(setup, path)
    await ask_everything()
    await client.join(setup)
    await ask_everything()
    await client.debug(end_game())
    await client.step(2)
    if client.status is Status.ENDED:
        await ask_everything()
    await client.begin(setup, path)
    until_s = time.monotonic() + _WARNINGS_S
    for _ in range(_ROUNDS):
        for request in _everything().values():
            await client.ask(request, 60.0)
        if client.status is not Status.IN_GAME:
            await client.begin(setup, path)
        if time.monotonic() > until_s:
            break
    lab.findings.note(warnings, lab.ledger.replies, dict(lab.ledger.warnings), answers)


def _everything() -> dict[str, sc_pb.Request]:
    """One request of each kind that does not change the status and may be sent at any time."""
    query = sc_pb.Request()
    query.query.abilities.add(unit_tag=1)
    maps = sc_pb.Request(available_maps=sc_pb.RequestAvailableMaps())
    return {
        "ping": requests.ping(),
        "available_maps": maps,
        "observation": requests.observation(),
        "game_info": requests.game_info(),
        "data": requests.data(),
        "query": query,
        "action": requests.action([]),
        "debug": debug_request(),
        "step": requests.step(1),
        "save_replay": requests.save_replay(),
    }
