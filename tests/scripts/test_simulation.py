"""Runs the pool on a simulated machine, like `scripts/simulate.py`, but only for some seconds.

If `test_schedules` fails, its message is the shortest schedule that fails. Replay that schedule
with `scripts/simulate.py --replay`; after the cause is fixed, add the schedule to `FOUND`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from sc2pool.deadline import NEVER
from sc2pool.platform import LINUX

if not LINUX:
    pytest.skip("the simulated machine is a Linux", allow_module_level=True)

from sc2pool.pool import episodes, stepping
from sc2pool.pool.batch import Gatherer, synthetic_outcome
from sc2pool.pool.calls import Calls
from sc2pool.pool.episodes import EpisodeBook
from sc2pool.pool.instances.event_loop import EventLoop
from sc2pool.pool.instances.supervisor import Supervisor
from sc2pool.pool.instances.workers import Worker
from sc2pool.pool.queues.layout import SlotLayout
from sc2pool.pool.queues.slots import Slot, SlotBatch, Slots
from sc2pool.pool.queues.trainer_end import TrainerEnd
from sc2pool.pool.stepping import Stepping
from sc2pool.processes.spawn import uninterrupted
from tests.support.simulation.play import play
from tests.support.simulation.schedule import Schedule, draw
from tests.support.simulation.shrink import failure, shortest
from tests.tiers import is_long

SCHEDULES = 25_000 if is_long() else 75
"""Number of schedules for each seed."""
SEEDS = range(4)
FOUND = {
    "an instance that hangs while it closes its env sees its successor's requests": Schedule(
        n=2,
        recycle=2,
        events=(
            ("reset",),
            ("act", 0, "truncated"),
            ("step",),
            ("reset",),
            ("hang", 0),
            ("refuse", "process", 2, 2),
            ("step",),
            ("step",),
            ("step",),
            ("act", 0, "truncated"),
        ),
    ),
    "an instance is replaced after the last reply of a wait, which knew of no other": Schedule(
        n=2, recycle=2, events=(("reset",), ("reset",), ("step",), ("act", 0, "told"))
    ),
    "this process was stopped while an instance left its worker": Schedule(
        spares=2,
        each=3,
        recycle=1,
        patience=1,
        events=(("reset",), ("reset", ""), ("sleep", 100.0)),
    ),
    "the folder of a new instance cannot be made": Schedule(
        events=(("reset",), ("refuse", "folder", 28, 8), ("step",), ("die", 0))
    ),
    "fork is refused while an env is reset": Schedule(
        events=(("refuse", "process", 11, 2), ("step",), ("fault", 0, "bad-reply"), ("reset",))
    ),
    "an interrupt while it is noted who has left a worker": Schedule(
        n=2,
        spares=1,
        each=3,
        launches=1,
        events=(
            ("reset",),
            ("interrupt",),
            ("recv", 1, None),
            ("verdict", 2, "hung"),
            ("at", 6, ("interrupt",)),
            ("reset", ""),
        ),
    ),
    "a worker is made, but cannot be waited for": Schedule(
        recycle=1,
        events=(("reset", ""), ("refuse", "epoll", 24, 1), ("step",), ("act", 0, "over")),
    ),
    "a step is under way when the pool is closed": Schedule(
        events=(("reset",), ("send", None), ("close",), ("seed",))
    ),
    "an instance cannot be waited for": Schedule(
        events=(("reset",), ("refuse", "epoll", 24, 2), ("pause", None), ("die", 0))
    ),
    "options that JSON cannot hold": Schedule(
        disk=True, events=(("reset", "odd"), ("fault", 0, "game-exited"))
    ),
    "an interrupt in a repair": Schedule(
        events=(("reset",), ("hang", 0), ("step",), ("at", 8, ("interrupt",)), ("reset",))
    ),
    "an interrupt in a repair that a call has begun": Schedule(
        events=(
            ("look",),
            ("die", 0),
            ("ask", None, 0.5, False),
            ("at", 4, ("interrupt",)),
            ("reset", ""),
        )
    ),
    "an interrupt in a batch of actions": Schedule(
        events=(("reset",), ("recv", 0, None), ("line", 41), ("step",), ("send", (0,)))
    ),
    "an interrupt while steps are dropped": Schedule(
        n=2,
        one_book=False,
        busy=1,
        events=(
            ("step",),
            ("sleep", 0.03),
            ("interrupt",),
            ("at", 0, ("interrupt",)),
            ("reset",),
            ("recv", None, 20.0),
            ("recv", 1, None),
        ),
    ),
    "an interrupt while a pool that fails is closed": Schedule(
        events=(("line", 457), ("refuse", "memory", 11, 1))
    ),
    "an attribute is set while an episode begins": Schedule(
        n=2,
        events=(
            ("fault", 0, "game-exited"),
            ("begin", None),
            ("fault", 0, "connection-lost"),
            ("set_attr", (0, 1)),
            ("die", 0),
            ("recv", None, None),
            ("step",),
        ),
    ),
    "an interrupt while a reset is counted": Schedule(
        events=(("begin", (0,)), ("line", 170), ("set_attr", None), ("look",))
    ),
    "an interrupt while a pool is made": Schedule(events=(("at", 0, ("interrupt",)),)),
    "more instances than may launch at one time": Schedule(n=3, launches=1),
    "nothing is pending": Schedule(events=(("recv", None, None), ("wait", None))),
    "an instance fails twice in one look": Schedule(
        patience=1,
        events=(
            ("reset",),
            ("fault", 0, "connection-lost"),
            ("send", (0,)),
            ("verdict", 0, "hung"),
            ("fault", 0, "bad-reply"),
            ("wait", None),
        ),
    ),
    "a spare is taken before the first one": Schedule(
        n=3,
        spares=2,
        realtime=True,
        events=(
            ("reset",),
            ("step",),
            ("step",),
            ("die", 0),
            ("refuse", "process", 24, 1),
            ("die", 2),
            ("reset",),
        ),
    ),
    "resume while a spare in real time begins an episode": Schedule(
        spares=2,
        realtime=True,
        launches=1,
        events=(("reset",), ("begin", None), ("resume", None)),
    ),
    "a spare that has put its episode off in a pause": Schedule(
        spares=2,
        seeded=True,
        events=(
            ("reset",),
            ("pause", None),
            ("fault", 0, "game-exited"),
            ("die", 0),
            ("act", 0, "plain"),
            ("fault", 0, "bad-reply"),
            ("step",),
            ("step",),
            ("hang", 1),
        ),
    ),
    "an interrupt before an instance is started, while a pool is made": Schedule(
        n=3, one_book=False, events=(("line", 134),)
    ),
    "a crash loop that is seen by a step of all envs": Schedule(
        patience=1,
        events=(
            ("reset",),
            ("die", 0),
            ("resume", None),
            ("die", 0),
            ("sleep", 0.03),
            ("step",),
        ),
    ),
    "an error of the user's that is seen by a step of all envs": Schedule(
        spares=2,
        events=(
            ("reset",),
            ("step",),
            ("act", 0, "plain"),
            ("raise", 1),
            ("sleep", 0.7),
            ("step",),
        ),
    ),
    "an episode that a call has begun was lost to a reset": Schedule(
        events=(("reset",), ("set_attr", None), ("die", 0), ("reset",)),
    ),
    "an env's turn did not come after an episode that a call has begun": Schedule(
        n=2,
        one_book=False,
        busy=1,
        events=(("step",), ("ask", None, 0.5, False), ("die", 0), ("step",)),
    ),
}
"""The shortest failing schedules that searches found, each with a different cause."""


def search(seed: int, schedules: int, reports: Path) -> str | None:
    """The violation and shortest form of the first failing schedule; None if all pass."""
    for index in range(schedules):
        schedule = draw(seed, index)
        if play(schedule, reports) is not None:
            return failure(shortest(schedule, reports), reports)
    return None


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", SEEDS)
def test_schedules(seed: int, tmp_path: Path) -> None:
    problem = uninterrupted(partial(search, seed, SCHEDULES, tmp_path))
    assert problem is None, problem


@pytest.mark.parametrize("schedule", FOUND.values(), ids=FOUND)
def test_found_schedules_stay_mended(schedule: Schedule, tmp_path: Path) -> None:
    assert uninterrupted(partial(play, schedule, tmp_path)) is None


def test_a_schedule_plays_the_same_every_time(tmp_path: Path) -> None:
    assert draw(3, 5) == draw(3, 5)
    assert eval(repr(draw(3, 5)), {"Schedule": Schedule}) == draw(3, 5)


Break = Callable[[pytest.MonkeyPatch], None]


ALWAYS_0 = property(lambda _: 0, lambda *_: None)


def patched(name: str, owner: type, attribute: str, value: object) -> Break:
    def break_it(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(owner, attribute, value, raising=False)

    break_it.__name__ = name
    return break_it


def deals_an_episode_twice(patch: pytest.MonkeyPatch) -> None:
    deal = EpisodeBook.deal

    def deal_again(book, options):
        episode = deal(book, options)
        book._next = min(book._next, 4)
        return episode

    patch.setattr(EpisodeBook, "deal", deal_again)


def seats_an_instance_twice(patch: pytest.MonkeyPatch) -> None:
    def half(seat, spare):
        seat.instance, seat.episode = spare.instance, spare.episode

    patch.setattr(episodes, "exchange", half)


def takes_any_message_for_the_reply(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TrainerEnd, "reply", lambda end: end.flags() if end.sequence else None)
    patch.setattr(SlotBatch, "unanswered", lambda _: [])


def clears_no_slot(patch: pytest.MonkeyPatch) -> None:
    def begin_anew(slots, slot, _):
        slots.sequences[slot] = 0
        return slots._slots[slot]

    patch.setattr(Slots, "clear", begin_anew)


def takes_any_answer_for_its_own(patch: pytest.MonkeyPatch) -> None:
    run = Calls._run

    def run_with_old_numbers(calls, *arguments):
        calls._made = 0
        return run(calls, *arguments)

    patch.setattr(Calls, "_run", run_with_old_numbers)


def does_not_plan_again(patch: pytest.MonkeyPatch) -> None:
    wait_until = EventLoop.wait_until

    def wait_without_plans(loop, condition, deadline=NEVER, advance=None):
        wait_until(loop, condition, deadline, advance and (lambda: advance() and False))

    patch.setattr(EventLoop, "wait_until", wait_without_plans)


def forgets_what_is_under_way(patch: pytest.MonkeyPatch) -> None:
    note_plain_steps = Stepping.note_plain_steps

    def note_without_it(stepping: Stepping) -> None:
        stepping._plain_step = None
        note_plain_steps(stepping)

    patch.setattr(Stepping, "note_plain_steps", note_without_it)


def believes_that_all_still_wait(patch: pytest.MonkeyPatch) -> None:
    note_plain_steps = Stepping.note_plain_steps

    def note_as_arranged(stepping: Stepping) -> None:
        arranged = stepping._is_arranged
        note_plain_steps(stepping)
        stepping._is_arranged = arranged

    patch.setattr(Stepping, "note_plain_steps", note_as_arranged)


def shows_its_batch_again(patch: pytest.MonkeyPatch) -> None:
    gather, kept = Gatherer.gather, {}

    def gather_and_keep(gatherer, envs, queues, given):
        batch = gather(gatherer, envs, queues, given)
        kept.update(enumerate(batch.observations))
        return batch

    def synthetic(*arguments):
        outcome = synthetic_outcome(*arguments)
        outcome.final_observations = [kept[0]]
        return outcome

    patch.setattr(Gatherer, "gather", gather_and_keep)
    patch.setattr(stepping, "synthetic_outcome", synthetic)


BROKEN: dict[Break, Schedule] = {
    does_not_plan_again: Schedule(
        n=2, recycle=1, events=(("reset",), ("step",), ("act", 0, "told"))
    ),
    patched("forgets what is taken back", EpisodeBook, "take_back", lambda *_: None): Schedule(
        spares=2, seeded=True, events=(("reset",), ("reset",))
    ),
    deals_an_episode_twice: Schedule(n=3, events=(("reset",), ("reset",))),
    seats_an_instance_twice: Schedule(
        spares=2, events=(("reset",), ("step",), ("fault", 0, "launch-failed"))
    ),
    patched("never looks at deadlines", Supervisor, "check_deadlines", lambda _: None): Schedule(
        events=(("hang", 0),)
    ),
    patched("keeps what an instance owned", Worker, "end", lambda _: None): Schedule(),
    takes_any_message_for_the_reply: Schedule(events=(("reset",),)),
    patched("gives a slot to two", TrainerEnd, "index", ALWAYS_0): Schedule(
        n=2, events=(("reset",),)
    ),
    patched("leaves its slot to be overwritten", Slot, "copied", lambda slot: slot): Schedule(
        n=2,
        events=(
            ("reset",),
            ("step",),
            ("act", 1, "plain"),
            ("fault", 1, "game-exited"),
            ("act", 0, "over"),
        ),
    ),
    clears_no_slot: Schedule(
        recycle=1,
        events=(
            ("reset",),
            ("act", 0, "told"),
            ("step",),
            ("pause", (0,)),
            ("act", 0, "plain"),
            ("act", 0, "plain"),
        ),
    ),
    shows_its_batch_again: Schedule(events=(("reset",), ("step",), ("die", 0))),
    patched("writes over the last observation", SlotLayout, "place_bytes", ALWAYS_0): Schedule(
        events=(("reset",), ("step",), ("die", 0))
    ),
    takes_any_answer_for_its_own: Schedule(
        events=(("ask", None, 0.0, False), ("ask", None, None, False))
    ),
    patched("drops no step", Stepping, "drop", lambda _: None): Schedule(
        events=(("reset",), ("send", (0,)), ("reset",))
    ),
    patched("is always in lockstep", Stepping, "_all_wait", lambda _: True): Schedule(
        events=(("reset",), ("send", (0,)), ("step",))
    ),
    forgets_what_is_under_way: Schedule(events=(("reset",), ("act", 0, "over"), ("step",))),
    believes_that_all_still_wait: Schedule(
        events=(("reset",), ("step",), ("send", (0,)), ("step",))
    ),
}
"""For each way to break the pool on purpose, the shortest known schedule that shows the defect."""


@pytest.mark.parametrize("break_it", BROKEN, ids=lambda break_it: break_it.__name__)
def test_a_broken_pool_is_found(
    break_it: Break, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    schedule = BROKEN[break_it]
    assert uninterrupted(partial(play, schedule, tmp_path)) is None
    break_it(monkeypatch)
    assert uninterrupted(partial(play, schedule, tmp_path)) is not None
