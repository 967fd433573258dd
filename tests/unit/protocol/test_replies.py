"""Requests to the game, and the checks of its replies."""

from __future__ import annotations

from pathlib import Path

import pytest
from s2clientprotocol import common_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import Computer, GameSetup
from sc2pool.errors import ConfigError, FaultKind, GameFault
from sc2pool.protocol import replies, requests

# ---- requests ------------------------------------------------------------------------------------


def test_create_game():
    setup = GameSetup(
        "x", opponents=(Computer(common_pb2.Zerg, sc_pb.Hard),), disable_fog=True, realtime=True
    )
    path = Path("/maps/x.SC2Map")
    create = requests.create_game(setup, path, 0).create_game
    assert create.local_map.map_path == str(path)
    assert create.random_seed == 0
    assert create.HasField("random_seed")
    assert create.disable_fog
    assert create.realtime
    assert [player.type for player in create.player_setup] == [sc_pb.Participant, sc_pb.Computer]
    assert create.player_setup[1].race == common_pb2.Zerg
    assert create.player_setup[1].difficulty == sc_pb.Hard
    assert create.player_setup[1].ai_build == sc_pb.RandomBuild
    create = requests.create_game(GameSetup("x"), path, None).create_game
    assert not create.HasField("random_seed")
    assert len(create.player_setup) == 1


def test_join_game_asks_for_raw_and_score():
    setup = GameSetup("x", race=common_pb2.Protoss)
    join = requests.join_game(setup).join_game
    assert join.race == common_pb2.Protoss
    options = join.options
    assert options.raw
    assert options.score
    assert options.show_cloaked
    assert options.show_burrowed_shadows
    assert options.show_placeholders
    assert not options.raw_affects_selection
    assert not options.raw_crop_to_playable_area
    assert not options.HasField("feature_layer")
    assert not options.HasField("render")


def test_a_match():
    setup = GameSetup("x", participants=2)
    create = requests.create_game(setup, Path("x"), None).create_game
    assert [player.type for player in create.player_setup] == [sc_pb.Participant] * 2
    ports = requests.MatchPorts(10, 11, 12, 13)
    join = requests.join_game(setup, ports, "guest").join_game
    assert join.player_name == "guest"
    assert (join.server_ports.game_port, join.server_ports.base_port) == (10, 11)
    assert [(pair.game_port, pair.base_port) for pair in join.client_ports] == [(12, 13)]
    alone = requests.join_game(setup).join_game
    assert not alone.HasField("server_ports") and not alone.client_ports


def test_an_observation_may_be_awaited():
    assert not requests.observation().observation.HasField("game_loop")
    asked = requests.observation(game_loop=9, disable_fog=True).observation
    assert (asked.game_loop, asked.disable_fog) == (9, True)


# ---- replies -------------------------------------------------------------------------------------


R = sc_pb.Response
STEP = sc_pb.ResponseStep()

ANSWERS = [
    (R(step=STEP, id=5, status=sc_pb.in_game), "step"),
    (R(step=STEP, status=sc_pb.in_game), "step"),  # old versions of the game leave the id out
    (R(step=STEP, id=5, status=sc_pb.ended), "step"),
    (R(error=["Not in a game"], id=5, status=sc_pb.launched), "step"),
    (R(ping=sc_pb.ResponsePing(), id=5, status=sc_pb.unknown), "ping"),
    (
        R(
            create_game=sc_pb.ResponseCreateGame(error=sc_pb.ResponseCreateGame.MissingMap),
            id=5,
            status=sc_pb.launched,
        ),
        "create_game",
    ),
]

NO_ANSWERS = [
    (R(), "step", "no status"),
    (R(status=sc_pb.in_game), "step", "empty"),
    (R(id=5, status=sc_pb.in_game), "step", "empty"),
    (R(step=STEP, id=4, status=sc_pb.in_game), "step", "id 4, expected 5"),
    (R(step=STEP, id=0, status=sc_pb.in_game), "step", "id 0, expected 5"),
    (R(step=STEP, id=5), "step", "no status"),
    (R(step=STEP, id=5, status=sc_pb.launched), "step", "launched cannot follow step"),
    (R(step=STEP, id=5, status=sc_pb.quit), "step", "quit cannot follow step"),
    (R(step=STEP, id=5, status=sc_pb.in_game), "observation", "is a step"),
    (
        R(create_game=sc_pb.ResponseCreateGame(), id=5, status=sc_pb.in_game),
        "create_game",
        "in_game cannot follow create_game",
    ),
    (
        R(join_game=sc_pb.ResponseJoinGame(), id=5, status=sc_pb.init_game),
        "join_game",
        "init_game cannot follow join_game",
    ),
]


@pytest.mark.parametrize(("reply", "kind"), ANSWERS)
def test_answers(reply, kind):
    replies.check(R.FromString(reply.SerializeToString()), 5, kind)


@pytest.mark.parametrize(("reply", "kind", "said"), NO_ANSWERS)
def test_no_answers(reply, kind, said):
    with pytest.raises(GameFault, match=said) as raised:
        replies.check(R.FromString(reply.SerializeToString()), 5, kind)
    assert raised.value.kind is FaultKind.BAD_REPLY


def test_every_request_with_a_reply_has_a_status_after_it():
    fields = {field.name for field in R.DESCRIPTOR.oneofs_by_name["response"].fields}
    assert set(replies.STATUS_AFTER) == fields - {"quit", "map_command", "obs_action"}


def create_error(name: str) -> sc_pb.Response:
    error = sc_pb.ResponseCreateGame.Error.Value(name)
    answer = sc_pb.ResponseCreateGame(error=error, error_details="the details")
    return R(create_game=answer, status=sc_pb.launched)


def join_error(name: str) -> sc_pb.Response:
    error = sc_pb.ResponseJoinGame.Error.Value(name)
    return R(join_game=sc_pb.ResponseJoinGame(error=error), status=sc_pb.launched)


RESTART_ERROR = R(
    restart_game=sc_pb.ResponseRestartGame(error=sc_pb.ResponseRestartGame.LaunchError),
    status=sc_pb.ended,
)

FAILED = [
    *(
        (create_error(name), "create_game", FaultKind.SETUP_FAILED, name)
        for name, _ in sc_pb.ResponseCreateGame.Error.items()
    ),
    (join_error("MapDoesNotExist"), "join_game", FaultKind.SETUP_FAILED, "MapDoesNotExist"),
    (join_error("LaunchError"), "join_game", FaultKind.SETUP_FAILED, "LaunchError"),
    (RESTART_ERROR, "restart_game", FaultKind.BAD_REPLY, "LaunchError"),
    (
        R(error=["no", "never"], status=sc_pb.ended),
        *("step", FaultKind.BAD_REPLY, "refused step.*no; never"),
    ),
]


@pytest.mark.parametrize(("reply", "kind", "fault", "said"), FAILED)
def test_failed(reply, kind, fault, said):
    replies.check(reply, 1, kind)
    with pytest.raises(GameFault, match=said) as raised:
        replies.require(reply, kind)
    assert raised.value.kind is fault


def test_an_error_of_a_replays_file_is_final():
    error = sc_pb.ResponseStartReplay.Error.Value("InvalidReplayData")
    with pytest.raises(ConfigError, match="InvalidReplayData"):
        replies.require(R(start_replay=sc_pb.ResponseStartReplay(error=error)), "start_replay")


def test_text_beside_the_reply_that_was_asked_for_is_no_refusal():
    reply = R(step=STEP, error=["Game has already ended", "careful"], status=sc_pb.in_game)
    assert not replies.is_refusal(reply)
    assert not replies.is_game_over(reply)
    replies.require(reply, "step")


@pytest.mark.parametrize(
    ("errors", "over"),
    [
        (["Game has already ended"], True),
        (["Not supported if game has already ended"], True),
        (["Not in a game"], True),
        (["Not in a game."], True),
        (["some other error"], False),
        ([], False),
    ],
)
def test_is_game_over(errors, over):
    assert replies.is_game_over(R(error=errors, status=sc_pb.ended)) is over


def observation(loop: int, *parts: str) -> sc_pb.ResponseObservation:
    answer = sc_pb.ResponseObservation()
    answer.observation.game_loop = loop
    for part in parts:
        getattr(answer.observation, part).SetInParent()
    return answer


WHOLE = ("raw_data", "player_common")

BAD_OBSERVATIONS = [
    (sc_pb.ResponseObservation(), "no observation"),
    (observation(2**32 - 1), "stub"),
    (observation(7, *WHOLE), "loop 7, expected 8"),
    (observation(9, *WHOLE), "loop 9, expected 8"),
    (observation(8, "player_common"), "no raw data"),
    (observation(8, "raw_data"), "no player"),
]


@pytest.mark.parametrize(("answer", "said"), BAD_OBSERVATIONS)
def test_bad_observations(answer, said):
    with pytest.raises(GameFault, match=said):
        replies.check_observation(answer, first_loop=8, last_loop=8)


@pytest.mark.parametrize("request_", [sc_pb.Request(), sc_pb.Request(quit=sc_pb.RequestQuit())])
def test_requests_without_reply(request_):
    with pytest.raises(ValueError, match="request"):
        replies.expected_kind(request_)


def test_flipped_bits_that_parse_are_mostly_seen():
    """Most replies with a flipped bit are refused; the rest are a step's replies or have errors."""
    right = R(step=sc_pb.ResponseStep(simulation_loop=8), id=5, status=sc_pb.in_game)
    payload = right.SerializeToString()
    passed = []
    for bit in range(len(payload) * 8):
        flipped = bytearray(payload)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            reply = R.FromString(bytes(flipped))
            replies.check(reply, 5, "step")
        except Exception:  # the parser or the check may raise any error
            continue
        passed.append(reply)
    assert len(passed) < len(payload) * 8 / 3
    assert all(reply.WhichOneof("response") == "step" or reply.error for reply in passed)


def test_the_words_of_a_game_are_no_commands_to_the_terminal():
    """Errors and logs show texts of the game escaped, and cut off after some lines."""
    with pytest.raises(GameFault) as caught:
        replies.require(R(error=["\x1b[2J\nno" * 1000], status=sc_pb.in_game), "step")
    assert r"(status in_game): \x1b[2J\nno" in caught.value.detail
    assert caught.value.detail.isprintable()
    assert len(caught.value.detail) < 3000
    join = sc_pb.ResponseJoinGame(error=sc_pb.ResponseJoinGame.GameFull, error_details="\x1b[2J")
    with pytest.raises((GameFault, ConfigError), match=r"GameFull .x1b\[2J$"):
        replies.require(R(join_game=join, status=sc_pb.init_game), "join_game")
