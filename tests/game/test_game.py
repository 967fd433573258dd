"""A game's life: launch, every way to begin an episode, steps, and a close that leaves nothing."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import GameSetup, Limits
from sc2pool.deadline import Deadline
from sc2pool.errors import ConfigError, FaultKind, GameFault
from sc2pool.game.game import NOWHERE, Game, ResetKind, Surroundings
from sc2pool.game.program import launch as launch_module
from sc2pool.game.program.installation import Installation, find_installation
from sc2pool.game.program.lease import HOST, PortLease
from sc2pool.game.program.process import GameProcess
from sc2pool.game.wire import connect
from sc2pool.platform import WINDOWS
from sc2pool.protocol.replies import Status
from tests.game.conftest import in_each_loop
from tests.support.systems import WINE, not_told_by_wine, strike, write_program

SETUP = GameSetup("MoveToBeacon")
MAP = Path("/maps/MoveToBeacon.SC2Map")
LIMITS = Limits(launch_s=20, create_join_s=10, reset_s=10, step_s=10)


@asynccontextmanager
async def playing(
    installation: Installation,
    limits: Limits = LIMITS,
    *,
    episode: bool = True,
    surroundings: Surroundings = NOWHERE,
) -> AsyncIterator[Game]:
    """Launches a game, begins an episode if asked to, and closes the game."""
    launching = Game.launch(
        installation,
        limits,
        deadline=Deadline.after(limits.launch_s),
        surroundings=surroundings,
    )
    with closing(await launching) as game:
        if episode:
            await game.start_episode(SETUP, MAP, None)
            await game.observe()
        yield game


async def step_fault(game: Game) -> GameFault:
    with pytest.raises(GameFault) as raised:
        await game.step([], 8)
    return raised.value


class TestEpisodes:
    @in_each_loop
    async def test_launch_and_step(self, fake):
        async with playing(fake()) as game:
            assert game.version == "fake"
            assert game.base_build == 99999
            assert game.listener_proven != WINE  # Wine does not report which process listens
            assert game.player_id == 1
            assert psutil.pid_exists(game.pid)
            assert "at your service" in game.process.log_tail()
            assert game.process.rss_bytes() > 1 << 20
            step = await game.step([sc_pb.Action(), sc_pb.Action()], 8)
            assert step.observed.observation.game_loop == 8
            assert step.action_results == [1, 1]
            assert not step.ended
            step = await game.step([], 3)
            assert step.observed.observation.game_loop == 11
            assert step.action_results == []
            assert game.status is Status.IN_GAME
            assert game.result is None

    async def test_rungs(self, fake):
        async with playing(fake()) as game:
            assert await game.start_episode(SETUP, MAP, None) is ResetKind.RESTART
            await game.observe()
            other = GameSetup("MoveToBeacon", disable_fog=True)
            assert await game.start_episode(other, MAP, None) is ResetKind.CREATE
            assert await game.start_episode(other, MAP, 7) is ResetKind.CREATE
            # A restart after a seeded game might repeat the seed.
            assert await game.start_episode(other, MAP, None) is ResetKind.CREATE
            assert await game.start_episode(other, MAP, None) is ResetKind.RESTART
            assert not game.recycle_due

    async def test_hard_reset_leads_to_create_and_recycle(self, fake):
        async with playing(fake(hard_reset=True)) as game:
            assert await game.start_episode(SETUP, MAP, None) is ResetKind.CREATE
            assert game.recycle_due

    @in_each_loop
    async def test_end_of_all_loops_is_foreseen(self, fake):
        async with playing(fake()) as game:
            await game.step([], 1 << 18)
            assert not game.recycle_due
            assert await game.start_episode(SETUP, MAP, None) is ResetKind.CREATE
            await game.step([], (1 << 19) - 1000)
            assert game.recycle_due

    @in_each_loop
    @pytest.mark.parametrize("no_result", [0, 1])
    async def test_game_over_is_data(self, fake, no_result):
        async with playing(fake(ends_at=20, no_result=no_result)) as game:
            assert not (await game.step([], 16)).ended
            step = await game.step([sc_pb.Action()], 16)
            assert step.ended
            assert step.observed.observation.game_loop == 20
            assert game.result == sc_pb.Victory
            assert game.status is Status.ENDED
            # The game refuses a step after the end, which is a normal reply.
            assert (await game.step([], 16)).ended
            assert await game.start_episode(SETUP, MAP, None) is ResetKind.RESTART
            assert game.result is None
            assert not (await game.step([], 16)).ended

    async def test_a_game_that_ends_without_a_result(self, fake):
        async with playing(fake(ends_at=20, no_result=9)) as game:
            step = await game.step([], 24)
            assert step.ended
            assert game.result is None
            assert game.untold_end == "the game ended without a result"

    @in_each_loop
    async def test_a_stub_at_the_end_shows_the_last_state_again(self, fake):
        async with playing(fake(ends_at=20, stub_at_end=True)) as game:
            before = (await game.step([], 16)).observed
            step = await game.step([sc_pb.Action()], 16)
            assert step.ended
            assert game.result == sc_pb.Victory
            assert not game.untold_end
            assert step.observed.game_loop == before.game_loop == 16
            assert [told.result for told in step.observed.response.player_result] == [game.result]
            assert await game.start_episode(SETUP, MAP, None) is ResetKind.RESTART

    @in_each_loop
    async def test_a_game_that_refuses_everything_after_its_end(self, fake):
        async with playing(fake(ends_at=20, not_in_game=True)) as game:
            before = (await game.step([], 16)).observed
            step = await game.step([sc_pb.Action()], 16)
            assert step.ended
            assert game.result is None
            assert "refused to show its state" in game.untold_end
            assert step.observed.game_loop == before.game_loop
            assert (await game.step([], 16)).ended
            assert await game.start_episode(SETUP, MAP, None) is ResetKind.CREATE
            assert not game.untold_end
            assert not (await game.step([], 16)).ended

    @in_each_loop
    async def test_text_beside_a_good_reply_is_a_warning(self, fake):
        warnings: list[str] = []
        surroundings = Surroundings(warn=warnings.append)
        async with playing(fake(warns=True), surroundings=surroundings) as game:
            step = await game.step([sc_pb.Action()], 8)
            assert step.observed.game_loop == 8
            assert step.action_results == [1]
            # No text is left in `error`, because a task or python-sc2 takes any text for a refusal.
            assert not (await game.request(sc_pb.Request(step=sc_pb.RequestStep(count=1)))).error
        assert {warning.partition(":")[0] for warning in warnings} == {
            f"the game says beside its reply to {kind}"
            for kind in ("ping", "create_game", "join_game", "action", "step", "observation")
        }

    async def test_a_game_that_lets_nobody_join(self, fake):
        async with playing(fake(player_id=0), episode=False) as game:
            with pytest.raises(GameFault, match="let nobody join") as raised:
                await game.start_episode(SETUP, MAP, None)
        assert raised.value.kind is FaultKind.SETUP_FAILED
        assert f"map {MAP}; game version fake (Base99999)" in raised.value.map_note

    async def test_a_restart_that_leaves_something_out_is_none(self, fake):
        warnings: list[str] = []
        surroundings = Surroundings(warn=warnings.append)
        async with playing(fake(units_fade=True), surroundings=surroundings) as game:
            for _ in range(2):
                assert await game.start_episode(SETUP, MAP, None) is ResetKind.CREATE
                assert len((await game.observe()).observation.raw_data.units) == 3
        (warning,) = warnings
        assert "1 units of type 48 of player 1 are missing" in warning

    @in_each_loop
    async def test_close_at_every_stage_and_twice(self, fake):
        async with playing(fake(), episode=False) as game:
            game.close()
            assert not psutil.pid_exists(game.pid)
            assert "at your service" in game.process.log_tail()
            fault = await step_fault(game)
            assert "closed" in fault.detail

    @in_each_loop
    def test_close_after_the_event_loop(self, fake):
        async def start() -> Game:
            return await Game.launch(fake(), LIMITS, deadline=Deadline.after(20))

        game = asyncio.run(start())
        game.close()


REPLY_FAULTS = [
    ("garbage", FaultKind.BAD_REPLY, "cannot be decoded"),
    ("truncated", FaultKind.BAD_REPLY, ""),
    ("duplicate", FaultKind.BAD_REPLY, ""),
    ("text", FaultKind.BAD_REPLY, "TEXT"),
    ("error", FaultKind.BAD_REPLY, "refused step"),
    ("wrong id", FaultKind.BAD_REPLY, "id"),  # the tests of `replies.check` try other wrong replies
    ("close", FaultKind.CONNECTION_LOST, ""),
    ("disconnect", FaultKind.CONNECTION_LOST, ""),
    ("not a websocket", FaultKind.CONNECTION_LOST, ""),
    ("nothing", FaultKind.BAD_REPLY, ""),  # the observation's reply comes in place of the step's
    ("exit", FaultKind.GAME_EXITED, "exit code 3"),
]


@in_each_loop
class TestFaults:
    @pytest.mark.parametrize(("wrong", "kind", "said"), REPLY_FAULTS)
    def test_wrong_reply(self, fake, wrong, kind, said, caplog):
        async def play():
            async with playing(fake(on_step={"2": wrong})) as game:
                await game.step([], 8)
                fault = await step_fault(game)
                assert fault.kind is kind
                assert said in fault.detail
                # A broken game stays broken: the next use must raise at once and send nothing.
                assert (await step_fault(game)).kind in (kind, FaultKind.CONNECTION_LOST)

        asyncio.run(play())
        assert not caplog.records

    @pytest.mark.parametrize("unusual", ["without id", "fragments", "slow"])
    async def test_unusual_but_right(self, fake, unusual):
        async with playing(fake(on_step={"1": unusual})) as game:
            assert (await game.step([], 8)).observed.observation.game_loop == 8

    async def test_stub_without_a_result(self, fake):
        async with playing(fake(stub=True), episode=False) as game:
            with pytest.raises(GameFault, match="stub"):
                await game.start_episode(SETUP, MAP, None)

    async def test_game_killed_during_a_step(self, fake):
        async with playing(fake(on_step={"1": "stop"})) as game:
            step = asyncio.ensure_future(step_fault(game))
            await asyncio.sleep(0)  # now the task sends the burst
            strike(game.pid, "KILL")
            fault = await asyncio.wait_for(step, 30)
            assert fault.kind is FaultKind.GAME_EXITED
            assert ("exit code" if WINDOWS else "SIGKILL") in fault.detail
            assert "at your service" in fault.detail  # the fault quotes the end of the log

    async def test_game_killed_between_steps(self, fake):
        async with playing(fake()) as game:
            ended = asyncio.Event()
            loop = asyncio.get_running_loop()
            loop.add_reader(game.process.exited_fd, ended.set)
            strike(game.pid, "KILL")
            await asyncio.wait_for(ended.wait(), 30)
            loop.remove_reader(game.process.exited_fd)
            assert (await step_fault(game)).kind is FaultKind.GAME_EXITED

    @not_told_by_wine  # only CPU time shows whether a game is stopped or slow
    @pytest.mark.timing
    async def test_stopped_game_is_hung(self, fake):
        async with playing(fake(on_step={"1": "stop"}), Limits(step_s=0.4)) as game:
            begun = asyncio.get_running_loop().time()
            fault = await step_fault(game)
            took_s = asyncio.get_running_loop().time() - begun
            assert fault.kind is FaultKind.DEADLINE
            assert 0.4 <= took_s < 1.0

    @not_told_by_wine
    @pytest.mark.timing
    async def test_busy_game_is_slow(self, fake):
        # The answer takes 1 s of CPU: between one and three times the limit of 0.6 s.
        async with playing(fake(on_step={"1": "busy"}), Limits(step_s=0.6)) as game:
            assert (await game.step([], 8)).observed.observation.game_loop == 8

    async def test_cancelled_step_breaks_the_connection(self, fake):
        async with playing(fake(on_step={"1": "slow"})) as game:
            step = asyncio.ensure_future(game.step([], 8))
            await asyncio.sleep(0)
            step.cancel()
            with pytest.raises(asyncio.CancelledError):
                await step
            assert "abandoned" in (await step_fault(game)).detail


class TestRequest:
    async def test_refusal_is_left_to_the_caller(self, fake):
        async with playing(fake(ends_at=5)) as game:
            await game.step([], 8)
            reply = await game.request(sc_pb.Request(step=sc_pb.RequestStep(count=1)))
            assert list(reply.error) == ["Game has already ended"]

    async def test_loops_stepped_by_request_are_counted(self, fake):
        async with playing(fake()) as game:
            await game.request(sc_pb.Request(step=sc_pb.RequestStep(count=5)))
            assert (await game.step([], 8)).observed.observation.game_loop == 13


async def failed_launch(installation: Installation, timeout_s: float = 20.0) -> GameFault:
    with pytest.raises(GameFault) as raised:
        await Game.launch(installation, LIMITS, deadline=Deadline.after(timeout_s))
    return raised.value


class TestLaunch:
    @pytest.mark.parametrize(
        ("at_start", "timeout_s", "kind", "said"),
        [
            ("exit", 20.0, FaultKind.LAUNCH_FAILED, "(?s)exit code 7.*no graphics card"),
            ("silent", 0.5, FaultKind.DEADLINE, "not ready"),
            ("port-refused", 20.0, FaultKind.PORT_TAKEN, ""),
        ],
    )
    def test_a_game_that_does_not_start(self, fake, at_start, timeout_s, kind, said):
        fault = asyncio.run(failed_launch(fake(at_start=at_start), timeout_s))
        assert fault.kind is kind
        assert re.search(said, fault.detail)

    @not_told_by_wine
    @pytest.mark.parametrize("at_start", ["stopped", "stopped-in-handshake"])
    def test_stopped_by_a_signal(self, fake, at_start):
        """The launch must fail without waiting for its time limit."""
        fault = asyncio.run(failed_launch(fake(at_start=at_start), timeout_s=60.0))
        assert fault.kind is FaultKind.STOPPED
        assert fault.detail == "the game was stopped by a signal and not continued"

    @not_told_by_wine
    async def test_stopped_for_a_moment(self, fake, monkeypatch):
        """The launch must succeed if two checks find the game stopped before it continues."""
        looks: list[bool] = []
        look = GameProcess.is_stopped

        def continuing(process: GameProcess) -> bool:
            looks.append(look(process))
            if len(looks) == 2:
                psutil.Process(process.pid).resume()
            return looks[-1]

        monkeypatch.setattr(GameProcess, "is_stopped", continuing)
        async with playing(fake(at_start="stopped")) as game:
            await game.step([], 8)
        assert looks[:2] == [True, True]

    async def test_not_found_before_ready(self, fake):
        async with playing(fake(at_start="not-found-first")) as game:
            await game.step([], 8)

    def test_another_protocol_of_an_unproven_program_costs_a_try(self, fake, monkeypatch):
        monkeypatch.setattr(
            "sc2pool.game.program.launch.find_listener", Mock(side_effect=psutil.AccessDenied)
        )
        fault = asyncio.run(failed_launch(fake(at_start="speaks-SSH"), timeout_s=60.0))
        assert fault.kind is FaultKind.PORT_TAKEN
        assert "SSH-2.0-OpenSSH" in fault.detail

    @not_told_by_wine  # if the listener cannot be proven, one try is lost
    @pytest.mark.parametrize(
        ("at_start", "answer"), [("speaks-SSH", "SSH-2.0-OpenSSH"), ("not-found", "404 Not Found")]
    )
    def test_a_program_of_another_protocol(self, fake, monkeypatch, at_start, answer):
        """The launch must fail before its limit: a program of another protocol is not the game."""
        monkeypatch.setattr("sc2pool.game.program.launch._REFUSES_FOR_S", 0.1)
        fault = asyncio.run(failed_launch(fake(at_start=at_start), timeout_s=60.0))
        assert fault.kind is FaultKind.LAUNCH_FAILED
        assert "does not speak StarCraft II's protocol" in fault.detail
        assert answer in fault.detail

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"MZ\x90\0 no program of this system", "cannot start"),
            pytest.param(
                b"#!/no/such/interpreter\n",
                "its interpreter or loader is missing",
                marks=pytest.mark.skipif(WINDOWS, reason="it has no scripts that name one"),
            ),
        ],
        ids=["another system's", "no interpreter"],
    )
    def test_an_executable_that_cannot_run(self, fake, content, said):
        installation = fake()
        installation.executable.write_bytes(content)
        with pytest.raises(ConfigError, match=said):
            asyncio.run(failed_launch(installation))

    def test_executable_gone_or_forbidden(self, fake):
        installation = fake()
        if not WINDOWS:  # files on Windows have no modes
            installation.executable.chmod(0o644)
            with pytest.raises(ConfigError, match="Permission denied"):
                asyncio.run(failed_launch(installation, 0.1))
        installation.executable.unlink()
        with pytest.raises(ConfigError, match="WinError 2" if WINDOWS else "No such file"):
            asyncio.run(failed_launch(installation, 0.1))

    @pytest.mark.parametrize("moment", ["missing", "forbidden", "being written"])
    def test_executable_that_is_being_replaced(self, fake, moment):
        """If an update hides the executable at the first try only, a later try must succeed."""
        installation = fake()
        executable = installation.executable
        aside = executable.with_name("aside")
        with ExitStack() as update:
            if moment == "missing":
                executable.rename(aside)
                update.callback(aside.rename, executable)
            elif moment == "forbidden":
                executable.chmod(0o644)
                update.callback(executable.chmod, 0o755)
            else:
                update.enter_context(executable.open("ab"))

            async def play():
                asyncio.get_running_loop().call_later(0.05, update.close)
                async with playing(installation) as game:
                    await game.step([], 8)

            asyncio.run(play())

    async def test_cancelled_launch(self, fake):
        launching = asyncio.ensure_future(failed_launch(fake(at_start="silent")))
        while not psutil.Process().children():
            await asyncio.sleep(0.005)
        launching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await launching

    @not_told_by_wine
    def test_impostor_gets_no_byte(self, fake):
        """If another process takes the port after the check, the launch must take another port."""
        received: list[bytes] = []
        impostors: list[socket.socket] = []

        def lease_port() -> PortLease:
            lease = PortLease.acquire()
            if not impostors:
                impostor = socket.socket()
                impostor.bind((HOST, lease.port))
                impostor.listen()
                impostor.settimeout(5)
                impostors.append(impostor)
            return lease

        async def play():
            # The real game would fail without the port; the fake one waits in silence.
            api = await launch_module.launch(fake(), Deadline.after(20), lease_port=lease_port)
            api.close()
            assert api.port != impostors[0].getsockname()[1]

        asyncio.run(play())
        with impostors[0] as impostor:
            visitor, _ = impostor.accept()
            with visitor:
                received.append(visitor.recv(100))
        assert received == [b""]

    @not_told_by_wine
    @pytest.mark.parametrize("refuses", [True, False])
    def test_another_program_takes_the_seat(self, standin_dir, tmp_path, monkeypatch, refuses):
        """The launch must replace a game that never answers, or that refuses a second client."""
        installation = find_installation(standin_dir)
        if not refuses:
            silent = write_program(tmp_path / "SC2_x64", NEVER_ANSWERS)
            installation = replace(installation, executable=silent)
        intruders: list[socket.socket] = []

        def connect_second(port: int) -> socket.socket:
            sock = connect(port)
            if not intruders:
                sock.setblocking(True)
                sock.settimeout(10)
                sock.sendall(HANDSHAKE)
                assert not refuses or b" 101 " in sock.recv(4096)
                intruders.append(sock)
                sock = connect(port)
            return sock

        monkeypatch.setattr(launch_module, "connect", connect_second)
        monkeypatch.setattr(launch_module, "_PORT_TRIES", 2 if refuses else 1)

        async def play():
            if refuses:
                async with playing(installation, episode=False) as game:
                    assert game.port != intruders[0].getpeername()[1]
            else:
                fault = await failed_launch(installation)
                assert fault.kind is FaultKind.PORT_TAKEN
                assert f"from port {intruders[0].getsockname()[1]}" in fault.detail

        try:
            asyncio.run(play())
        finally:
            intruders[0].close()


HANDSHAKE = b"\r\n".join(
    [
        b"GET /sc2api HTTP/1.1",
        b"Host: 127.0.0.1",
        b"Upgrade: websocket",
        b"Connection: Upgrade",
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        b"Sec-WebSocket-Version: 13",
        b"\r\n",
    ]
)
NEVER_ANSWERS = """
import socket, sys
port = int(sys.argv[sys.argv.index("-port") + 1])
listener = socket.create_server(("127.0.0.1", port))
clients = []
while True:
    clients.append(listener.accept())
"""
