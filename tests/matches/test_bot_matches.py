"""Matches of python-sc2 bots: an `RLBotAI` on both sides, or an ordinary bot as the opponent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import psutil
import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb
from sc2.bot_ai import BotAI
from sc2.data import Race, Result
from sc2.ids.unit_typeid import UnitTypeId
from sc2.player import Bot

from sc2pool.config import Computer
from sc2pool.errors import FaultKind, GameFault, UserCodeError
from sc2pool.players.sc2_player import SC2Player
from sc2pool.tasks.melee import Melee
from sc2pool.tasks.opponents.policies import PlainBot
from sc2pool.tasks.opponents.resolve import resolve
from sc2pool.tasks.player import Episode
from sc2pool.tasks.queue_pair import Transition
from tests.matches.duel_bots import ATTACK, WAIT, DuelBot, DuelTask, PlainDuelBot
from tests.matches.playing import Against, always, play, player_of

pytestmark = pytest.mark.standin("StarCraft II has no map MarineDuel")

STEP_MUL = DuelTask.step_mul
PACES = (1, 3, 8, np.int64(12), 40)


@pytest.fixture(autouse=True)
def met() -> Iterator[list[PlainDuelBot]]:
    """The bots without a learner that have played in a test."""
    PlainDuelBot.met.clear()
    yield PlainDuelBot.met
    PlainDuelBot.met.clear()


def last_info(row: list[Transition]) -> dict[str, Any]:
    return dict(row[-1].info)


def test_two_bots_play_what_two_tasks_play(standin_dir):
    def turns(seed: int) -> Any:
        draws = np.random.default_rng(seed)
        return lambda _: int(draws.integers(2))

    runs = []
    for task in (DuelTask, DuelBot):
        with player_of(standin_dir, task) as player:
            assert isinstance(player, SC2Player)
            assert player.rows == 2
            runs.append(play(player, [turns(1), turns(2)], seeds=[3, 4]))
            (seen, _) = player.latest_view()
            assert seen.game_loop == runs[-1][-1][0][-1].info["loop"]
    np.testing.assert_equal(runs[1], runs[0])
    for rows in runs[1]:
        for number, row in enumerate(rows, 1):
            assert {one.observation[0] for one in row} == {number}
        results = {last_info(row)["sc2pool.result"] for row in rows}
        assert results in ({"win", "loss"}, {"tie"})
        assert rows[0][-1].terminated and rows[1][-1].terminated


class GivesUp(DuelBot):
    """A bot that leaves in the third step if it is the second player."""

    async def act(self, action: int) -> None:
        if self.player_id == 2 and self.state.game_loop == 2 * STEP_MUL:
            await self.client.leave()


def test_a_learner_that_leaves_has_lost(standin_dir):
    with player_of(standin_dir, GivesUp) as player:
        episodes = play(player, [always(WAIT)] * 2, seeds=[1, 2])
    for first, second in episodes:
        assert last_info(first)["sc2pool.result"] == "win"
        assert last_info(second)["sc2pool.result"] == "loss"
        assert len(first) == len(second) == 4


class StepsAlone(DuelBot):
    async def act(self, action: int) -> None:
        await self.client.step(8)


def test_a_policy_plays_the_other_side_of_a_bot(standin_dir):
    opponent = Against(always(ATTACK))
    with player_of(standin_dir, DuelBot, opponent=opponent) as player:
        assert player.rows == 1
        episodes = play(player, [always(WAIT)], seeds=[1, 1])
    for number, ((learner,), pair) in enumerate(zip(episodes, opponent.pairs, strict=True)):
        (theirs,) = pair.rows
        assert learner[0].observation[0] == 1 + number
        assert theirs[0].observation[0] == 2 - number
        assert last_info(learner)["sc2pool.opponent"] == f"number {number}"
        assert last_info(learner)["sc2pool.result"] == "loss"
        assert last_info(theirs)["sc2pool.result"] == "win"


def test_a_bot_against_the_computer(standin_dir):
    with player_of(standin_dir, DuelBot, opponent=Computer(difficulty=sc_pb.Hard)) as player:
        ((learner,),) = play(player, [always(ATTACK)], seeds=[1])
    assert last_info(learner)["sc2pool.opponent"] == "computer-Hard"
    assert last_info(learner)["sc2pool.result"] in ("win", "loss", "tie")


def test_an_ordinary_bot_is_the_opponent(standin_dir, met):
    with player_of(standin_dir, DuelTask, opponent=resolve(PlainDuelBot, DuelTask)) as player:
        assert player.rows == 1
        episodes = play(player, [always(WAIT)], seeds=[1, 1])
    assert [row[0].observation[0] for (row,) in episodes] == [1, 2], "on either side"
    for (learner,), bot in zip(episodes, met, strict=True):
        assert last_info(learner)["sc2pool.opponent"] == "PlainDuelBot"
        assert last_info(learner)["sc2pool.result"] == "loss"
        assert learner[-1].terminated
        assert bot.ends == [Result.Victory]
        assert bot.loops == list(range(0, learner[-1].info["loop"], 4)), "python-sc2's own pace"
        assert bot.iterations == list(range(len(bot.loops)))
        assert bot.created == [], "what is there from the start is no event"


class InEachPace:
    """An opponent whose bot takes its turns at a different pace in each episode."""

    def begin(self, episode: Episode) -> tuple[str, PlainBot]:
        return "paced", PlainBot(PlainDuelBot(True, PACES[episode.number]))


@pytest.mark.parametrize("task", [DuelTask, DuelBot], ids=["Task", "RLBotAI"])
def test_a_bot_has_a_pace_of_its_own(standin_dir, task, met):
    """The learner's steps must stay as long as the task says; each death must be reported once."""
    with player_of(standin_dir, task, opponent=InEachPace()) as player:
        episodes = play(player, [always(ATTACK)], seeds=[2] * len(PACES))
    for (learner,), bot, pace in zip(episodes, met, PACES, strict=True):
        assert bot.loops == list(range(0, learner[-1].info["loop"], pace))
        loops = [one.info["loop"] for one in learner]
        assert loops[:-1] == list(range(0, loops[-1], STEP_MUL))
        result = last_info(learner)["sc2pool.result"]
        assert result in ("win", "loss")
        assert bot.ends == [Result.Defeat if result == "win" else Result.Victory]
        assert len(bot.destroyed) == len(set(bot.destroyed))
        if result == "win":
            assert len([tag for tag in bot.destroyed if tag]) >= 5


def test_a_bot_brings_its_race_and_its_name(standin_dir, met):
    given = Bot(Race.Zerg, PlainDuelBot(), name="swarm")
    with player_of(standin_dir, DuelTask, opponent=resolve(given, DuelTask)) as player:
        episodes = play(player, [always(WAIT)], seeds=[1, 1])
    assert [last_info(row)["sc2pool.opponent"] for (row,) in episodes] == ["swarm"] * 2
    assert len(met) == 2, "each episode has a copy"
    assert met[0] is not met[1] and given.ai not in met
    assert [bot.race for bot in met] == [Race.Zerg] * 2
    assert [bot.enemy_race for bot in met] == [Race.Terran] * 2


def test_a_bot_that_leaves_has_lost(standin_dir, met):
    opponent = resolve(PlainDuelBot(gives_up_at=5), DuelTask)
    with player_of(standin_dir, DuelTask, opponent=opponent) as player:
        episodes = play(player, [always(WAIT)], seeds=[1, 1])
    for (learner,), bot in zip(episodes, met, strict=True):
        assert last_info(learner)["sc2pool.result"] == "win"
        assert learner[-1].info["loop"] <= 24
        assert bot.ends == [Result.Defeat]


def test_the_tasks_time_limit_is_a_tie_for_the_bot(standin_dir, met):
    opponent = resolve(PlainDuelBot(False, 24), DuelTask)
    with player_of(standin_dir, DuelTask, opponent=opponent, max_loops=80) as player:
        ((learner,),) = play(player, [always(WAIT)], seeds=[1])
    assert (learner[-1].terminated, learner[-1].truncated) == (False, True)
    assert last_info(learner)["sc2pool.result"] == "undecided"
    (bot,) = met
    assert bot.loops == [0, 24, 48, 72]
    assert bot.ends == [Result.Tie]


class NotesItsEnd(DuelBot):
    """Player 1 ends episode 0 at the fourth observation; the time limit ends all other episodes."""

    max_loops: ClassVar[int | None] = 4 * STEP_MUL
    met: ClassVar[list[NotesItsEnd]] = []

    async def on_start(self) -> None:
        self.met.append(self)
        self.observed, self.ends = 0, []

    def observe(self) -> Any:
        self.observed += 1
        return super().observe()

    def terminated(self) -> bool:
        return (self.episode.number, self.player_id, self.observed) == (0, 1, 4)

    async def on_end(self, game_result: Result) -> None:
        self.ends.append(game_result)
        await super().on_end(game_result)


def test_both_bots_are_told_that_the_task_ended_the_episode(standin_dir):
    NotesItsEnd.met.clear()
    with player_of(standin_dir, NotesItsEnd) as player:
        episodes = play(player, [always(WAIT), always(WAIT)], seeds=[1, 1])
    assert [bot.ends for bot in NotesItsEnd.met] == [[Result.Tie]] * 4
    assert [bot.observed for bot in NotesItsEnd.met] == [4, 4, 5, 5]
    assert [len(row) for rows in episodes for row in rows] == [4, 4, 5, 5]


def test_a_bot_that_an_opponent_plays_is_told_it_too(standin_dir):
    NotesItsEnd.met.clear()
    with player_of(standin_dir, NotesItsEnd, opponent=Against(always(WAIT))) as player:
        play(player, [always(WAIT)], seeds=[1])
    assert [bot.ends for bot in NotesItsEnd.met] == [[Result.Tie], [Result.Tie]]


class MeleeDuel(Melee):
    players: ClassVar[int] = 2
    opponents: ClassVar[tuple[Computer, ...]] = ()


class Builder(BotAI):
    """Builds supply depots and barracks, and trains marines."""

    has: ClassVar[dict[str, int]] = {}

    async def on_start(self) -> None:
        self.client.game_step = 16

    async def on_step(self, iteration: int) -> None:
        home = self.townhalls.first
        if self.supply_left < 3 and not self.already_pending(UnitTypeId.SUPPLYDEPOT):
            await self.build(UnitTypeId.SUPPLYDEPOT, near=home.position)
        barracks = self.structures(UnitTypeId.BARRACKS)
        if self.structures(UnitTypeId.SUPPLYDEPOT).ready and barracks.amount < 3:
            await self.build(
                UnitTypeId.BARRACKS, near=home.position.towards(self.game_info.map_center, 9)
            )
        if home.is_idle and self.workers.amount < 16:
            home.train(UnitTypeId.SCV)
        for one in barracks.ready.idle:
            one.train(UnitTypeId.MARINE)
        for worker in self.workers.idle:
            worker.gather(self.mineral_field.closest_to(worker))
        marines = self.units(UnitTypeId.MARINE)
        self.has.update(barracks=barracks.amount, marines=marines.amount)


def test_python_sc2s_helpers_find_places_and_count_what_is_under_way(standin_dir):
    opponent, until_it_has_marines = resolve(Builder, MeleeDuel), 2640
    with player_of(
        standin_dir, MeleeDuel, opponent=opponent, step_mul=32, max_loops=until_it_has_marines
    ) as player:
        play(player, [always(0)], seeds=[1])
    assert Builder.has["barracks"] == 3
    assert Builder.has["marines"] >= 1


class WrongPaceBot(PlainDuelBot):
    async def on_step(self, iteration: int) -> None:
        self.client.game_step = 0


class PickyBot(PlainDuelBot):
    def __init__(self, favourite: str) -> None:
        super().__init__()
        self.favourite = favourite


def test_error_of_a_bots_constructor_is_its_own(standin_dir):
    with (
        player_of(standin_dir, DuelTask, opponent=resolve(PickyBot, DuelTask)) as player,
        pytest.raises(TypeError, match="favourite") as raised,
    ):
        play(player, [always(WAIT)], seeds=[1])
    assert raised.value.__notes__ == ["the opponent raised it, not the task"]


class KilledBot(PlainDuelBot):
    """A bot that kills its game, and then sends the game a query."""

    async def on_step(self, iteration: int) -> None:
        if iteration == 2:
            psutil.Process(self.client._game.process.pid).kill()
            await self.client.query_pathing(self.units[0], self.enemy_units[0].position)


def test_the_death_of_a_bots_game_is_no_user_code(standin_dir):
    with (
        player_of(standin_dir, DuelTask, opponent=resolve(KilledBot, DuelTask)) as player,
        pytest.raises(GameFault) as raised,
    ):
        play(player, [always(WAIT)], seeds=[1])
    assert raised.value.kind in (FaultKind.GAME_EXITED, FaultKind.CONNECTION_LOST)
    assert raised.value.detail.startswith("guest: ")


class AsksNothing(DuelBot):
    async def on_step(self, iteration: int) -> None:
        if iteration != 2:
            await super().on_step(iteration)


class AsksTwice(DuelBot):
    async def on_step(self, iteration: int) -> None:
        await super().on_step(iteration)
        await super().on_step(iteration)


class EndsForItself(DuelBot):
    async def on_end(self, game_result: Result) -> None:
        """A bot that puts no last transition into its queue pair."""


@pytest.mark.parametrize(
    ("task", "opponent", "told"),
    [
        (AsksNothing, None, r"AsksNothing.on_step\(\) asked for no action"),
        (AsksTwice, None, r"AsksTwice.on_step\(\) asked for two actions"),
        (EndsForItself, None, r"EndsForItself.on_end\(\) put no transition"),
        (StepsAlone, None, "cannot request step of its game here: both games"),
        (DuelTask, WrongPaceBot, "game_step of the opponent 'WrongPaceBot'.*got 0"),
    ],
)
def test_what_a_bot_may_not_do_is_user_code_error(standin_dir, task, opponent, told):
    against = opponent and resolve(opponent, task)
    with (
        player_of(standin_dir, task, opponent=against) as player,
        pytest.raises(UserCodeError, match=told),
    ):
        play(player, [always(ATTACK)] * player.rows, seeds=[1])


class Thoughtful(DuelBot):
    """A bot whose `on_step` does something before and after it calls the base class."""

    async def on_step(self, iteration: int) -> None:
        self.order = ["before"]
        await asyncio.sleep(0)
        await super().on_step(iteration)
        self.order.append("after")
        assert self.order == ["before", "observed", "acted", "after"] or self.episode_over

    def observe(self) -> Any:
        self.order.append("observed")
        return super().observe()

    async def act(self, action: int) -> None:
        await asyncio.sleep(0)
        self.order.append("acted")
        super().act(action)


def test_an_extended_on_step_runs_in_its_order(standin_dir):
    runs = []
    for task in (DuelBot, Thoughtful):
        with player_of(standin_dir, task, max_loops=400) as player:
            runs.append(play(player, [always(ATTACK), always(WAIT)], seeds=[1]))
    np.testing.assert_equal(runs[1], runs[0])
