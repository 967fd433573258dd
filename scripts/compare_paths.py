"""Compares the compiled step path with pure Python, on damaged replies and on transitions.

Usage:
    .venv/bin/python scripts/compare_paths.py --count 1000000 --address-sanitizer
    .venv/bin/python scripts/compare_paths.py --count 1000000 --seed 1    # Compares messages.

Pure Python must accept every message that the compiled path accepts, and must read the same values.
A third of the messages are observations, a third are the frames of all replies to a step, and a
third are transitions of a worker (`tests.support.fuzz.transitions`). The first differences are
printed. With `--address-sanitizer` the compiled path is first built into a temporary folder, so
that a read outside of a message ends the program. This build needs Cython and gcc.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.errors import FaultKind, GameFault
from sc2pool.protocol import compiled, replies
from sc2pool.protocol.observed import Head, Observed
from sc2pool.units import Kind, health, select, weapon_cooldown
from tests.support.fuzz import transitions

ROOT = Path(__file__).parents[1]
REQUEST_ID = 77
SHOWN = 5
"""The comparison ends after this number of differences."""
FIELDS = (1, 2, 3, 4, 5, 6, 7, 9, 10, 14, 16, 22, 30, 46, 97, 98, 99)
"""The field numbers of the fields that are added as damage."""
VALUES = (0, 1, 3, 4, 5, REQUEST_ID, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 32, (1 << 64) - 1)
NUMBERS = (b"\0\0\0\0", b"\0\0\xc0\x7f", b"\0\0\x80\xff", b"\0\0\x80\x3f", b"\xff\xff\x7f\x7f")
"""Encoded floats: zero, NaN, minus infinity, one, and the largest number."""

Rng = random.Random
Content = int | bytes
"""The content of a field: the number of a varint, or bytes."""


# ---- damage -------------------------------------------------------------------------------------


def damaged(payload: bytes, rng: Rng) -> bytes:
    """The message with one to three random changes."""
    damage = damaged_fields if rng.random() < 0.5 else damaged_bytes
    for _ in range(rng.randint(1, 3)):
        payload = damage(payload, rng)
    return payload


def damaged_bytes(payload: bytes, rng: Rng) -> bytes:
    """The message with some bytes changed, missing, added or repeated."""
    at = rng.randrange(len(payload) + 1)
    until = min(at + rng.randint(1, 8), len(payload))
    replacement: Callable[[], bytes] = rng.choice(
        (
            lambda: b"",
            lambda: rng.randbytes(until - at),
            lambda: rng.randbytes(rng.randint(1, 8)) + payload[at:until],
            lambda: payload[at:until] * 2,
            lambda: bytes([rng.choice((0, 1, 0x7F, 0x80, 0xFF))]) * (until - at),
            lambda: bytes(byte ^ 1 << rng.randrange(8) for byte in payload[at:until]),
        )
    )
    if rng.random() < 0.02:
        until = len(payload)
    return payload[:at] + replacement() + payload[until:]


def damaged_fields(payload: bytes, rng: Rng) -> bytes:
    """The message with one field changed, at any depth; the lengths are corrected."""
    try:
        fields = list(fields_of(payload))
    except ValueError:
        return damaged_bytes(payload, rng) if payload else payload
    messages = [at for at, (_, wire_type, _) in enumerate(fields) if wire_type == 2]
    if messages and rng.random() < 0.75:
        at = rng.choice(messages)
        number, wire_type, content = fields[at]
        assert isinstance(content, bytes)
        fields[at] = number, wire_type, damaged_fields(content, rng)
    else:
        change = rng.choice((_drop, _repeat, _swap, _add, _renumber, _refill, _refill))
        if fields or change is _add:
            change(fields, rng)
    return b"".join(field_bytes(*field) for field in fields)


def _drop(fields: list[Any], rng: Rng) -> None:
    del fields[rng.randrange(len(fields))]


def _repeat(fields: list[Any], rng: Rng) -> None:
    fields.insert(rng.randrange(len(fields) + 1), rng.choice(fields))


def _swap(fields: list[Any], rng: Rng) -> None:
    one, other = rng.randrange(len(fields)), rng.randrange(len(fields))
    fields[one], fields[other] = fields[other], fields[one]


def _add(fields: list[Any], rng: Rng) -> None:
    wire_type = rng.choice((0, 2, 5))
    fields.insert(
        rng.randrange(len(fields) + 1), (rng.choice(FIELDS), wire_type, _any(wire_type, rng))
    )


def _renumber(fields: list[Any], rng: Rng) -> None:
    at = rng.randrange(len(fields))
    fields[at] = (rng.choice(FIELDS), *fields[at][1:])


def _refill(fields: list[Any], rng: Rng) -> None:
    at = rng.randrange(len(fields))
    number, wire_type, _ = fields[at]
    fields[at] = number, wire_type, _any(wire_type, rng)


def _any(wire_type: int, rng: Rng) -> Content:
    if wire_type == 0:
        return rng.choice(VALUES)
    if wire_type == 5:
        return rng.choice(NUMBERS)
    return rng.randbytes(8 if wire_type == 1 else rng.randint(0, 4))


def fields_of(payload: bytes) -> Iterator[tuple[int, int, Content]]:
    """The number, the wire type and the content of each field.

    Raises:
        ValueError: The payload is not a message.
    """
    at = 0
    while at < len(payload):
        tag, at = read_varint(payload, at)
        wire_type = tag & 7
        if wire_type == 0:
            value, at = read_varint(payload, at)
            yield tag >> 3, wire_type, value
            continue
        length = {1: 8, 5: 4}.get(wire_type)
        if wire_type == 2:
            length, at = read_varint(payload, at)
        if length is None or at + length > len(payload):
            raise ValueError("no message")
        yield tag >> 3, wire_type, payload[at : at + length]
        at += length


def field_bytes(number: int, wire_type: int, content: Content) -> bytes:
    tag = varint(number << 3 | wire_type)
    if isinstance(content, int):
        return tag + varint(content)
    return tag + (varint(len(content)) if wire_type == 2 else b"") + content


def read_varint(payload: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(payload) and shift < 64:
        value |= (payload[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if payload[at - 1] < 0x80:
            return value, at
    raise ValueError("no varint")


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


# ---- comparison ---------------------------------------------------------------------------------


def a_reply(n_units: int = 6) -> bytes:
    """A reply with all the fields that the compiled path reads."""
    reply = sc_pb.Response(id=REQUEST_ID, status=sc_pb.in_game)
    answer = reply.observation
    answer.actions.add().action_raw.unit_command.ability_id = 16
    answer.chat.add(player_id=1, message="gg")
    seen = answer.observation
    seen.game_loop = 5
    seen.alerts.append(sc_pb.NuclearLaunchDetected)
    seen.abilities.add(ability_id=16)
    seen.player_common.player_id = 1
    seen.score.score = -5
    seen.score.score_details.idle_worker_time = 1.5
    seen.raw_data.player.camera.x = 1.0
    seen.raw_data.map_state.visibility.bits_per_pixel = 8
    seen.raw_data.event.dead_units.append(5)
    seen.raw_data.effects.add(effect_id=1).pos.add(x=1, y=2)
    for number in range(n_units):
        unit = seen.raw_data.units.add(tag=(1 << 32) - number, unit_type=48 + number % 2)
        unit.display_type, unit.alliance, unit.owner = 1, 1 + number % 4, -1
        unit.pos.x, unit.pos.y, unit.pos.z = 0.1 * number, 100.3 - number, -1.0
        unit.orders.add(ability_id=1).target_world_space_pos.x = 1
        unit.orders.add(ability_id=1, target_unit_tag=5, progress=0.5)
        unit.passengers.add(tag=5, health=1, unit_type=48)
        unit.rally_targets.add(tag=5).point.x = 1
        unit.buff_ids.extend([1, 300])
        if number % 2:
            unit.health, unit.shield, unit.energy, unit.weapon_cooldown = 45.5, 0.1, 3, -0.2
    return bytes(reply.SerializeToString())


def a_step(n_units: int = 6, n_actions: int = 2) -> bytes:
    """The frames of a step's replies; the first reply has the id REQUEST_ID."""
    answers = [sc_pb.Response(step=sc_pb.ResponseStep(simulation_loop=300))]
    if n_actions:
        answers.insert(0, sc_pb.Response(action=sc_pb.ResponseAction(result=[1] * n_actions)))
    answers.append(sc_pb.Response.FromString(a_reply(n_units)))
    for number, answer in enumerate(answers):
        answer.id, answer.status = REQUEST_ID + number, sc_pb.in_game
    return b"".join(frame(answer.SerializeToString()) for answer in answers)


def frame(payload: bytes) -> bytes:
    """A websocket frame of a server, with a whole binary message."""
    size = len(payload)
    if size < 126:
        return b"\x82%c%b" % (size, payload)
    if size < 1 << 16:
        return b"\x82\x7e%b%b" % (size.to_bytes(2), payload)
    return b"\x82\x7f%b%b" % (size.to_bytes(8), payload)


def messages_of(data: bytes) -> list[bytes]:
    """The messages that whole frames carry.

    Raises:
        ValueError: The data are not frames of whole binary messages.
    """
    messages = []
    while data:
        if len(data) < 2 or data[0] != 0x82 or data[1] > 127:
            raise ValueError("no frame of a whole binary message")
        head = {126: 4, 127: 10}.get(data[1], 2)
        size = data[1] if head == 2 else int.from_bytes(data[2:head])
        if len(data) < head + size:
            raise ValueError("a frame is cut off")
        messages.append(data[head : head + size])
        data = data[head + size :]
    return messages


def damaged_step(data: bytes, rng: Rng) -> bytes:
    """The frames of a step's replies, with damage to the frames or to a message in a frame."""
    if rng.random() < 0.2:
        return damaged_bytes(data, rng)
    messages = messages_of(data)
    at = rng.randrange(len(messages))
    messages[at] = damaged(messages[at], rng)
    return b"".join(map(frame, messages))


def step_difference(data: bytes) -> str | None:
    """How the paths differ on the frames of a step's replies; None if they do not differ."""
    plain = compiled.fast.step_replies(data, REQUEST_ID, acts=True)
    if plain is None:
        return None
    try:
        action, step, observed = messages_of(data)
        answers = []
        for number, (payload, kind) in enumerate(((action, "action"), (step, "step"))):
            answer = sc_pb.Response.FromString(payload)
            replies.check(answer, REQUEST_ID + number, kind)
            replies.require(answer, kind)
            answers.append(answer)
        expected = shown(observed, judged(observed, REQUEST_ID + 2))
    except (DecodeError, GameFault, ValueError) as error:
        return f"accepted, but pure Python refuses: {error}"
    expected += [list(answers[0].action.result), answers[1].step.simulation_loop, observed]
    got = shown(observed, plain)
    got += [[1] * plain.n_results, plain.simulation_loop, plain.payload]
    return None if got == expected else f"{got}\n  pure Python: {expected}"


def difference(payload: bytes, request_id: int = REQUEST_ID) -> str | None:
    """How the compiled path differs from pure Python on a reply; None if they do not differ.

    A reply that the compiled path leaves to pure Python is not a difference.
    """
    plain = compiled.fast.observation(payload, request_id)
    if plain is None:
        return None
    try:
        expected = shown(payload, judged(payload, request_id))
    except (DecodeError, GameFault) as error:
        return f"accepted, but pure Python refuses: {error}"
    got = shown(payload, plain)
    return None if got == expected else f"{got}\n  pure Python: {expected}"


def judged(payload: bytes, request_id: int) -> Any:
    """The reply as pure Python reads it during a game; raises an error if the reply is bad."""
    head = Head.FromString(payload)
    replies.check(head, request_id, "observation")
    replies.require(head, "observation")
    loop = head.observation.observation.game_loop
    replies.check_observation(head.observation, first_loop=loop, last_loop=loop)
    if head.status != sc_pb.in_game or head.observation.player_result:
        raise GameFault(FaultKind.BAD_REPLY, "the game is over")
    return head


def shown(payload: bytes, read: Any) -> list[Any]:
    """Everything that a task can read from an observation, with arrays as bytes."""
    observed = Observed(payload, read)
    columns = [list(column) for column in observed.columns]
    kinds = sorted({Kind(*kind) for kind in zip(columns[1], columns[2], strict=True)})
    whole: list[Any] = [observed.game_loop, observed.score, *columns]
    for units in select(observed, *kinds, Kind(1, 1)):
        whole += [units.tags, units.positions.shape, units.positions.tobytes()]
        whole += [health(units).tobytes(), weapon_cooldown(units).tobytes()]
        whole += [unit.SerializeToString(deterministic=True) for unit in units.messages]
    return whole


def compare(
    samples: list[bytes], count: int, seed: int, *, steps: bool = False
) -> tuple[list[str], Counter[str]]:
    """Compare both paths on the samples, and on `count` damaged copies of the samples.

    Args:
        samples: replies with observations.
        count: the number of damaged copies.
        seed: the seed of the damage.
        steps: whether the samples are frames of steps' replies.

    Returns:
        The differences; and the number of messages that the compiled path accepted, and the number
        of messages that it left to pure Python.
    """
    read: Callable[[bytes], Any] = partial(compiled.fast.observation, request_id=REQUEST_ID)
    damage, differs = damaged, difference
    if steps:
        read = partial(compiled.fast.step_replies, first_id=REQUEST_ID, acts=True)
        damage, differs = damaged_step, step_difference
    rng = random.Random(seed)
    found: list[str] = []
    verdicts: Counter[str] = Counter()
    for number in range(-len(samples), count):
        sample = samples[number % len(samples)]
        payload = sample if number < 0 else damage(sample, rng)
        verdicts["left" if read(payload) is None else "accepted"] += 1
        if (how := differs(payload)) is not None:
            found.append(f"{payload.hex()}\n  {how}")
            if len(found) == SHOWN:
                break
    return found, verdicts


# ---- the program --------------------------------------------------------------------------------


def run_sanitized(arguments: list[str]) -> int:
    """Build the compiled path with AddressSanitizer and run this program with it."""
    with tempfile.TemporaryDirectory(prefix="sc2pool-sanitized-") as folder:
        flags = "-fsanitize=address -fno-omit-frame-pointer -g -O1"
        subprocess.run(
            [
                sys.executable,
                "setup.py",
                "-q",
                "build_ext",
                "--force",
                "--build-lib",
                folder,
                "--build-temp",
                f"{folder}/temp",
            ],
            cwd=ROOT,
            env=os.environ | {"CFLAGS": flags, "LDFLAGS": "-fsanitize=address"},
            check=True,
        )
        library = subprocess.run(
            ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
        )
        # With PYTHONMALLOC each object has its own block, so reads beyond the block are noticed.
        environment = {
            "LD_PRELOAD": library.stdout.strip(),
            "PYTHONMALLOC": "malloc",
            "ASAN_OPTIONS": "detect_leaks=0",
        }
        program = (
            f"import sys, sc2pool; sc2pool.__path__.insert(0, {folder + '/sc2pool'!r}); "
            f"sys.path.insert(0, {str(Path(__file__).parent)!r}); import compare_paths; "
            "sys.exit(compare_paths.main())"
        )
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(command, env=os.environ | environment, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20_000, help="damaged messages")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--address-sanitizer", action="store_true")
    options = parser.parse_args()
    if options.address_sanitizer:
        return run_sanitized(["--count", str(options.count), "--seed", str(options.seed)])
    if compiled.STEP_PATH != "compiled":
        print("the compiled step path is not installed")
        return 2
    n_found = 0
    for steps, make in ((False, a_reply), (True, a_step)):
        samples = [make(n_units) for n_units in (6, 0, 1)]
        found = compare(samples, options.count // 3, options.seed, steps=steps)
        n_found += tell("steps" if steps else "observations", *found)
    n_found += tell("transitions", *transitions.compare(options.count // 3, options.seed))
    return 1 if n_found else 0


def tell(what: str, found: list[str], verdicts: Counter[str]) -> int:
    """Print the differences; returns their number."""
    print(f"{what}: {verdicts['accepted']:,} accepted, {verdicts['left']:,} left to pure Python")
    for how in found:
        print(f"DIFFERENT {how}")
    return len(found)


if __name__ == "__main__":
    sys.exit(main())
