"""Replays: other programs read them, the game repeats them exactly, `sc2pool replay` draws them."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from importlib import resources

import numpy as np
import pytest
from PIL import Image
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin import mpq, recording
from sc2standin.data.abilities import ABILITIES
from sc2standin.status import Status
from sc2standin.version import BASE_BUILD, GAME_VERSION
from tests.standin.maps.test_map_files import read_by_mpyq
from tests.standin.sessions import RAW, against
from tests.support.fuzz.draw import Draw
from tests.support.programs import run

OBSERVE = sc_pb.RequestObservation()
SAVE = sc_pb.RequestSaveReplay()
MARINE, ROACH = 48, 110
MAPS = sorted(
    entry.name.removesuffix(".SC2Map")
    for entry in resources.files("sc2standin").joinpath("maps").iterdir()
    if entry.name.endswith(".SC2Map")
)
InfoError = sc_pb.ResponseReplayInfo.Error
StartError = sc_pb.ResponseStartReplay.Error


def observed(session) -> bytes:
    """The current observation, without the status and id around it."""
    reply = session.ask(observation=OBSERVE)
    assert not reply.error
    return reply.observation.SerializeToString(deterministic=True)


def watched(session, data: bytes) -> list[bytes]:
    """Every observation of a replay, from the first loop to the last."""
    session.watch(data)
    seen = [observed(session)]
    while session.step(8).status == sc_pb.in_replay:
        seen.append(observed(session))
    return [*seen, observed(session)]


def play(session, steps: int, *, enemies: bool = True) -> list[bytes]:
    """Play random commands (some are wrong), chat and create units; returns every observation."""
    rng = np.random.default_rng(1)
    seen = [observed(session)]
    for step in range(steps):
        units = session.observe().raw_data.units
        mine = [unit for unit in units if unit.owner == 1]
        if mine:
            ability = ABILITIES[rng.integers(len(ABILITIES))].id
            point = tuple(rng.uniform(0, 64, 2))
            session.order(mine[: rng.integers(1, 4)], ability, point=point)
        if enemies and step % 5 == 1:
            session.create((ROACH, 2, *rng.uniform(20, 40, 2)))
        if step % 3 == 0:
            session.act(sc_pb.Action(action_chat=sc_pb.ActionChat(message=f"step {step}")))
        if session.step(8).status == sc_pb.ended:
            break
        seen.append(observed(session))
    else:
        return seen
    return [*seen, observed(session)]


@pytest.mark.parametrize("name", MAPS)
def test_a_replay_shows_what_the_game_showed(session_for, name):
    session = session_for()
    session.start(name, seed=7)
    # On three maps the client's marines would soon die if enemies were created.
    # So no enemies are created on Canned, FindAndDefeatZerglings and MarineDuel.
    enemies = name not in ("Canned", "FindAndDefeatZerglings", "MarineDuel")
    played = play(session, steps=40, enemies=enemies)
    assert len(set(played)) == len(played) > 15
    again = watched(session_for(), session.replay())
    assert again[:-1] == played[:-1]
    assert without_undecided(again[-1]) == played[-1]


def without_undecided(content: bytes) -> bytes:
    """An observation without the result Undecided, which only replays of unfinished games have."""
    last = sc_pb.ResponseObservation.FromString(content)
    if last.player_result[0].result == sc_pb.Undecided:
        last.ClearField("player_result")
    return last.SerializeToString(deterministic=True)


def test_replays_of_random_requests(session_for):
    """With any commands and on any map, a replay must end with the game's last observation."""
    game, watching = session_for(), session_for()
    draw = Draw(1, [f"mini_games/{name}.SC2Map" for name in MAPS])
    compared = 0
    for number in range(3000):
        frame = draw.frame()
        draw.told(sc_pb.Response.FromString(game.ask_frame(frame)))
        if number % 30 or draw.status not in (Status.IN_GAME, Status.ENDED):
            continue
        if game.state.playback is None:
            watching.start_replay(game.replay(), options=game.state.options)
            watching.step(2**31)
            assert whole_map(watching) == whole_map(game), number
            compared += 1
    assert compared > 40


def whole_map(session) -> sc_pb.Observation:
    """The present state of the map, without deaths and alerts, which only one observation shows."""
    seen = session.observed(disable_fog=True).observation
    seen.raw_data.ClearField("event")
    seen.ClearField("alerts")
    return seen


def test_an_episode_after_restarts_and_its_end(session_for):
    session = session_for()
    session.start("MoveToBeacon", seed=3, player_setup=against(sc_pb.Medium))
    session.step(50)
    session.ask(restart_game=sc_pb.RequestRestartGame())
    played = play(session, steps=1000, enemies=False)
    data = session.replay()
    assert watched(session_for(), data) == played
    # Before the replay, the session begins another episode.
    session.ask(restart_game=sc_pb.RequestRestartGame())
    session.step(8)
    assert watched(session, data) == played
    info = session.ask(replay_info=sc_pb.RequestReplayInfo(replay_data=data)).replay_info
    assert info.map_name == "MoveToBeacon"
    assert info.game_duration_loops == 1920
    assert info.base_build == BASE_BUILD
    assert [
        (extra.player_info.player_id, extra.player_info.type, extra.player_result.result)
        for extra in info.player_info
    ] == [(1, sc_pb.Participant, sc_pb.Victory), (2, sc_pb.Computer, sc_pb.Defeat)]
    assert info.player_info[1].player_info.difficulty == sc_pb.Medium


def test_a_game_that_a_debug_command_ended(session_for):
    session = session_for()
    session.start()
    session.step(8)
    session.end_game("Surrender")
    assert session.step(8).status == sc_pb.ended
    again = session_for()
    last = sc_pb.ResponseObservation.FromString(watched(again, session.replay())[-1])
    assert (last.observation.game_loop, last.player_result[0].result) == (9, sc_pb.Defeat)
    assert "already ended" in again.step().error[0]


def test_commands_that_end_the_process_are_not_recorded(offline):
    offline.start()
    end = debug_pb.DebugTestProcess(test=debug_pb.DebugTestProcess.crash, delay_ms=50)
    kill = debug_pb.DebugKillUnit(tag=[offline.units(MARINE)[0].tag])
    offline.debug(debug_pb.DebugCommand(test_process=end), debug_pb.DebugCommand(kill_unit=kill))
    offline.state.fate = None
    assert offline.step(8).status == sc_pb.ended
    watched(offline, offline.replay())
    assert offline.state.fate is None
    assert not offline.observe().raw_data.units[1:]


def test_other_programs_read_the_file(offline):
    """python-sc2 and pysc2 choose a game by the version in a replay."""
    offline.start()
    offline.step(224)
    metadata = json.loads(read_by_mpyq(offline.replay())["replay.gamemetadata.json"])
    assert metadata["BaseBuild"] == f"Base{BASE_BUILD}"
    assert metadata["GameVersion"][:-6] == GAME_VERSION
    assert (metadata["Title"], metadata["Duration"]) == ("MoveToBeacon", 10)
    assert metadata["Players"][0]["Result"] == "Undecided"
    assert metadata["Players"][0]["AssignedRace"] == "Terr"


def test_legal_requests_in_a_replay(session_for):
    session = session_for()
    session.start()
    session.step(16)
    data = session.replay()
    session.watch(data)
    assert session.state.status == Status.IN_REPLAY
    for refused in (
        {"action": sc_pb.RequestAction()},
        {"debug": sc_pb.RequestDebug()},
        {"join_game": sc_pb.RequestJoinGame()},
        {"restart_game": sc_pb.RequestRestartGame()},
        {"save_replay": SAVE},
    ):
        assert "replay" in session.ask(**refused).error[0]
    info = session.game_info()
    assert (info.map_name, info.options) == ("MoveToBeacon", RAW)
    assert session.ask(data=sc_pb.RequestData(effect_id=True)).data.effects
    session.watch(data, record_replay=True)
    session.step(8)
    assert recording.read(session.replay()).info.game_duration_loops == 8
    assert session.step(8).status == sc_pb.ended
    assert "in a replay" in session.ask(restart_game=sc_pb.RequestRestartGame()).error[0]
    left = session.ask(leave_game=sc_pb.RequestLeaveGame())
    assert left.status == sc_pb.launched
    session.start()
    assert session.step(16).status == sc_pb.in_game


def test_fog_and_who_watches(session_for):
    session = session_for()
    session.arena((MARINE, 1, 12, 12), (ROACH, 2, 50, 50), fog=True)
    session.step(8)
    data = session.replay()

    def roaches(**fields) -> int:
        other = session_for()
        other.watch(data, **fields)
        other.step(8)
        return len(other.units(ROACH))

    assert roaches() == 0
    assert roaches(disable_fog=True) == 1
    assert roaches(observed_player_id=0) == 1


def test_a_replay_in_real_time(game):
    wire = game.connect()
    wire.start()
    wire.step(20)
    data = wire.replay()
    request = sc_pb.RequestStartReplay(replay_data=data, options=RAW, realtime=True)
    assert wire.ask(start_replay=request).status == sc_pb.in_replay
    refused = wire.ask(step=sc_pb.RequestStep())
    assert "realtime" in refused.error[0]
    seen = wire.ask(observation=sc_pb.RequestObservation(game_loop=20))
    assert seen.observation.observation.game_loop == 20
    assert seen.status == sc_pb.ended


def test_replays_are_found_by_path(offline, installation, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    offline.start()
    data = offline.replay()
    in_game = installation / "Replays" / "a.SC2Replay"
    in_home = tmp_path / "Documents" / "StarCraft II" / "Replays" / "b.SC2Replay"
    outside = tmp_path / "c.SC2Replay"
    for path in (in_game, in_home, outside):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for path in ("a.SC2Replay", str(in_game), "b.SC2Replay", str(in_home)):
        reply = offline.ask(replay_info=sc_pb.RequestReplayInfo(replay_path=path))
        assert reply.replay_info.map_name == "MoveToBeacon", reply
    for path in (str(outside), "../../../c.SC2Replay", "none.SC2Replay", "", "/etc/hostname"):
        reply = offline.ask(replay_info=sc_pb.RequestReplayInfo(replay_path=path))
        assert reply.replay_info.error == InfoError.MissingReplay
    odd = offline.ask(replay_info=sc_pb.RequestReplayInfo(replay_path="a\0b"))
    assert odd.replay_info.error == InfoError.InvalidReplayPath
    in_game.unlink()


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"replay_data": b""}, StartError.MissingReplay),
        ({"replay_data": b"MPQ\x1a"}, StartError.InvalidReplayData),
        ({"replay_data": b"x" * 5000}, StartError.InvalidReplayData),
        ({"options": None}, StartError.MissingOptions),
        ({"observed_player_id": 2}, StartError.InvalidObservedPlayerId),
        ({"map_data": b"no map"}, StartError.InvalidMapData),
    ],
)
def test_a_replay_that_cannot_be_started_changes_nothing(offline, fields, code):
    offline.start()
    offline.step(8)
    before = observed(offline)
    reply = offline.start_replay(offline.replay(), **fields)
    assert (reply.start_replay.error, reply.status) == (code, sc_pb.in_game)
    assert reply.start_replay.error_details
    assert observed(offline) == before
    assert offline.step().status == sc_pb.in_game


def test_damaged_and_forged_files_are_refused(offline):
    offline.arena((MARINE, 1, 12, 12))
    data = offline.replay()
    rng = np.random.default_rng(1)
    for _ in range(300):
        damaged = bytearray(data)
        for place in rng.integers(len(data), size=rng.integers(1, 4)):
            damaged[place] = rng.integers(256)
        reply = offline.ask(replay_info=sc_pb.RequestReplayInfo(replay_data=bytes(damaged)))
        assert not reply.error, "an exception"
    named = read_by_mpyq(data)
    end = debug_pb.DebugCommand(test_process=debug_pb.DebugTestProcess(test=1))
    for request in (
        sc_pb.Request(debug=sc_pb.RequestDebug(debug=[end])),
        sc_pb.Request(quit=sc_pb.RequestQuit()),
        sc_pb.Request(create_game=sc_pb.RequestCreateGame()),
    ):
        content = request.SerializeToString()
        entry = bytes(4) + len(content).to_bytes(4, "little") + content
        forged = mpq.pack(named | {"sc2pool.requests": named["sc2pool.requests"] + entry})
        reply = offline.start_replay(forged)
        assert reply.start_replay.error == StartError.InvalidReplayData


@pytest.mark.parametrize("number", ["1" + 400 * "0", "1e999", "NaN", "-1", "[]", "257"])
def test_a_deposit_at_a_place_that_no_map_has_is_refused(offline, number):
    """JSON may hold a whole number of 400 digits, which does not fit a `float`."""
    offline.start()
    named = read_by_mpyq(offline.replay())
    episode = json.loads(named["sc2pool.episode.json"])
    episode["quirks"] = {"spent": [["place", 1, 0]], "late_loops": 0, "waves_stall": False}
    content = json.dumps(episode).replace('"place"', number).encode()
    forged = mpq.pack(named | {"sc2pool.episode.json": content})
    reply = offline.start_replay(forged)
    assert not reply.error, "an exception"
    assert reply.start_replay.error == StartError.InvalidReplayData
    assert "not a replay of the stand-in: " in reply.start_replay.error_details


def real_replay(metadata: object) -> bytes:
    """The beginning of a StarCraft II replay, with the only file in it that the stand-in reads."""
    told = b"\x05\x12\0\x02,StarCraft II replay\x1b11"
    before = struct.pack("<4sIII", mpq.USER_DATA, 512, 1024, len(told)) + told
    files = {"replay.gamemetadata.json": json.dumps(metadata).encode(), "replay.details": b"?"}
    return before.ljust(1024, b"\0") + mpq.pack(files)


REAL = {
    "Title": "Cyber Forest LE",
    "GameVersion": "4.10.0.75689",
    "Duration": 1149,
    "Players": [
        {"PlayerID": 1, "APM": 148.0, "Result": "Loss", "AssignedRace": "Prot"},
        {"PlayerID": 2, "APM": 204.0, "Result": "Win", "AssignedRace": "Zerg"},
    ],
}


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        (
            REAL,
            "cannot play: Cyber Forest LE, version 4.10.0.75689, 1149 s; "
            "player 1 Prot, Loss; player 2 Zerg, Win",
        ),
        ({"Title": "x"}, "cannot play; it does not say of which game ('Players')"),
        ([], "cannot play; it does not say of which game"),
    ],
)
def test_a_replay_of_the_real_game_is_named_as_such(offline, metadata, told):
    content = real_replay(metadata)
    offline.start()
    request = sc_pb.RequestReplayInfo(replay_data=content)
    info = offline.ask(replay_info=request).replay_info
    start = offline.start_replay(content).start_replay
    assert info.error == InfoError.InvalidReplayData
    assert start.error == StartError.InvalidReplayData
    for details in (info.error_details, start.error_details):
        assert details.startswith("a replay of StarCraft II, which the stand-in ")
        assert told in details


READ = """
import sys
from pathlib import Path
from sc2standin import recording

try:
    recording.read(Path(sys.argv[1]).read_bytes())
except recording.ReplayError as error:
    [peak] = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    print(int(peak.split()[1]) // 1024, error)
"""
"""Prints how many MiB of memory the refusal of a replay took, and the refusal's reason.

`ru_maxrss` would also count the parent process's memory, because Linux does not reset it on exec.
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
@pytest.mark.parametrize(
    ("part", "repeated"),
    [
        ("sc2pool.requests", recording.HEAD.pack(0, 1, 0)),  # empty requests
        ("sc2pool.requests", None),  # a request with many empty actions
        ("sc2pool.info", b"\x1a\x00"),  # players
        ("sc2pool.episode.json", b"[],"),
    ],
)
def test_what_becomes_of_a_file_is_bounded(offline, tmp_path, part, repeated):
    """A replay of 70 KB, unpacked to 60 MB, could take gigabytes of memory if nothing bounds it."""
    offline.start()
    named = read_by_mpyq(offline.replay())
    if repeated is None:
        # A request whose field `action` has a length written as 4 bytes of 7 bits each.
        size = 60_000_000
        length = bytes(size >> 7 * k & 127 | (128 if k < 3 else 0) for k in range(4))
        request = b"\x5a" + length + b"\x0a\x00" * (size // 2)
        assert sc_pb.Request.FromString(b"\x5a\x02\x0a\x00").action.actions
        more = recording.HEAD.pack(0, 1, len(request)) + request
    else:
        more = repeated * (60_000_000 // len(repeated))
    path = tmp_path / "bomb.SC2Replay"
    content = b"[" + more + b"0]" if part.endswith(".json") else named[part] + more
    path.write_bytes(mpq.pack(named | {part: content}))
    assert path.stat().st_size < 200_000
    done = run(sys.executable, "-c", READ, path)
    assert done.returncode == 0, done.stderr
    memory_mib, _, why = done.stdout.partition(" ")
    assert "not a replay of the stand-in" in why
    assert int(memory_mib) < 400


def test_the_record_is_bounded(offline, monkeypatch):
    monkeypatch.setattr(recording, "MAX_BYTES", 10_000)
    offline.start()
    chat = sc_pb.Action(action_chat=sc_pb.ActionChat(message="x" * 1000))
    for _ in range(8):
        offline.act(chat)
    offline.replay()
    for _ in range(50):
        offline.act(chat)
    assert "too many commands" in offline.ask(save_replay=SAVE).error[0]
    assert offline.state.setup.recording._bytes < 12_000
    offline.ask(restart_game=sc_pb.RequestRestartGame())
    offline.replay()


def test_who_watches_may_have_another_interface(session_for):
    """A player may have asked for cropped coordinates; an observer has options of its own."""
    session = session_for()
    cropped = sc_pb.InterfaceOptions(raw=True, raw_crop_to_playable_area=True)
    session.start(interface=cropped)
    played = []
    for point in ((1, 2), (20, 12), (3, 9)):
        session.order(session.units(MARINE), 16, point=point)
        session.step(40)
        played.append((session.units(MARINE)[0].pos.x, session.units(MARINE)[0].pos.y))
    data = session.replay()
    corner = session_for()
    corner.start()
    area = corner.game_info().start_raw.playable_area.p0
    for options, moved in ((RAW, (area.x, area.y)), (cropped, (0, 0))):
        watching = session_for()
        watching.watch(data, options=options)
        for x, y in played:
            watching.step(40)
            pos = watching.units(MARINE)[0].pos
            assert (pos.x, pos.y) == pytest.approx((x + moved[0], y + moved[1]), abs=1e-4)


def show(*arguments: object) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "sc2pool", "replay", *arguments)


def test_a_replay_becomes_a_picture(offline, installation, tmp_path):
    offline.start("DefeatRoaches")
    offline.step(40)
    replay, picture = tmp_path / "a.SC2Replay", tmp_path / "a.gif"
    replay.write_bytes(offline.replay())
    done = show(replay, picture, "--game", installation, "--every", 16)
    assert done.returncode == 0, done.stderr
    assert f"{picture}: 4 frames" in done.stdout
    with Image.open(picture) as image:
        assert (image.size, image.n_frames) == ((640, 480), 4)  # frames at loops 0, 16, 32, 40
    replay.write_bytes(b"no replay")
    done = show(replay, picture, "--game", installation)
    assert done.returncode == 2
    assert f"{replay} is not a replay of this game" in done.stderr
    assert "InvalidReplayData not a replay of the stand-in" in done.stderr


def forged(replay: bytes, **about: object) -> bytes:
    """Returns the replay with changed facts in its description of the game."""
    named = read_by_mpyq(replay)
    info = sc_pb.ResponseReplayInfo.FromString(named["sc2pool.info"])
    for name, value in about.items():
        setattr(info, name, value)
    return mpq.pack(named | {"sc2pool.info": info.SerializeToString()})


def test_no_text_of_a_replay_is_a_command_to_the_terminal(offline, installation, tmp_path):
    """A replay's text may set the window's title, clear the screen, or imitate output."""
    offline.start()
    replay = tmp_path / "a.SC2Replay"
    replay.write_bytes(
        forged(
            offline.replay(),
            map_name="\x1b]0;title\x07\x1b[2J\nsc2pool: all is well",
            game_version="5\x1b[1A\u202e",
        )
    )
    done = show(replay, "--game", installation)
    assert done.returncode == 0, done.stderr
    first, player = done.stdout.splitlines()
    assert r"\x1b]0;title\x07\x1b[2J\nsc2pool: all is well" in first
    assert ", 0 loops" in first and first.isprintable()
    assert player.startswith("  player 1: ")


def test_a_replay_of_more_frames_than_a_picture_takes(offline, installation, tmp_path):
    offline.start()
    replay, picture = tmp_path / "a.SC2Replay", tmp_path / "a.gif"
    replay.write_bytes(forged(offline.replay(), game_duration_loops=500_000))
    done = show(replay, picture, "--game", installation)
    assert done.returncode == 2
    assert "has 500,000 loops, of which a picture shows at most 3,000: give --every 167" in (
        done.stderr
    )
    assert not picture.exists()
