"""An instance in a simulated worker, which answers like a real one when the schedule says so.

The instance's rows say where they come from (instance, episode, step, action, the episode's
options, an attribute, the seed), so that the trainer recognises any wrong row.

The instance can act (`act`) in several ways. "plain" means to do the next thing that is due. The
ways "info", "over", "truncated" and "told" (over, with an info) say what the next answer to a step
is. With "late" the part of the answer that is sent beside the slot comes later. With "refused"
the game does not launch, or cannot be stopped (at its first observation, or later). With "game" the
game replies before the worker reads its messages. With "stale" the answer to a step comes after the
next reset's request.
"""

from __future__ import annotations

import pickle
from collections import deque
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from gymnasium import spaces

from sc2pool.errors import Fault, FaultKind, Phase
from sc2pool.game.clock import Tick
from sc2pool.pool import messages
from sc2pool.pool.queues.layout import slot_layout
from sc2pool.pool.queues.slots import Slot, Word
from sc2pool.pool.worker.worker_end import WorkerEnd
from sc2pool.tasks.queue_pair import Transition

FIELDS = ("instance", "number", "step", "action", "mark", "attribute", "seed", "whole")
WHOLE = 77
"""The value of the last field ("whole") in each row that was written completely."""
OF_A_STEP = frozenset({"info", "late", "over", "truncated", "told"})
"""Ways to act that change the next answer to a step, even if the worker does other things first."""
SPACE = spaces.MultiDiscrete([2**31 - 1] * len(FIELDS))
ACTIONS = spaces.Box(0, 2**31 - 1, (1,), np.int64)
NO_LAYOUT = spaces.Text(1)
_LAYOUTS = {False: slot_layout(SPACE, ACTIONS), True: slot_layout(NO_LAYOUT, NO_LAYOUT)}
_TICK = Tick(0.01, 0, 0)


class Worker:
    """The part of a worker that belongs to one instance.

    Attributes:
        alive: True if the instance has not ended, and its process runs.
        stopped: True if the instance's game is stopped.
        outbox: The messages that the trainer has not read yet.
    """

    def __init__(self, world: Any, number: int, slots: Any, process: Any) -> None:
        self._world = world
        self.number = number
        self._slots = slots
        self.process = process
        self._hosted = False
        self.inbox: deque[Any] = deque()
        self.outbox: deque[Any] = deque()
        self._late: deque[Any] = deque()
        self.alive = True
        self.stopped = False
        self._has_game = True
        self._launching = False
        self._pair: WorkerEnd | None = None
        self._slot: Slot | None = None
        self._reset: messages.Reset | None = None
        self._episode: Any = None
        self._answered = 0
        self._out_of_band: tuple[int, Any] | None = None
        self._step = 0
        self._attribute = 0
        self._can_hold = True
        self._how = self._next_step = "plain"
        self._is_late = False
        self._player = SimpleNamespace(
            strict=not world.schedule.pickled,
            realtime=world.schedule.realtime,
            recycle_due="",
            loop_cost_growth=lambda: 1.0,
            reset_kind=lambda: "create",
            tick=lambda: _TICK if world.schedule.realtime else None,
        )

    @property
    def can_act(self) -> bool:
        if self.process.hung:
            return False
        if self._is_ordered():
            return True
        return self._hosted and (bool(self.inbox or self._late) or self._game_can_act())

    def _is_ordered(self) -> bool:
        orders = self.process.orders
        while orders and not orders[0][0].alive:
            orders.popleft()
        return bool(orders) and orders[0][0] is self

    def _asked(self) -> int:
        """The number of the request for a step that has not been answered; 0 for none."""
        if self._out_of_band is not None:
            return self._out_of_band[0]
        assert self._slot is not None
        request = self._slot.words[Word.REQUEST]
        return request if request == self._answered + 1 else 0

    def act(self, how: str) -> None:
        """Do, in the given way, the next thing that is due."""
        if self._is_ordered():
            _, leaves = self.process.orders.popleft()
            self._hosted = True
            if leaves:
                self.alive = False
                self._late.clear()
            return
        if how in OF_A_STEP:
            self._next_step = how
        if self._late:
            self._say(self._late.popleft())
        elif self.inbox and not (how == "game" and self._game_can_act()):
            message = self.inbox.popleft()
            self._how = how
            getattr(self, f"_on_{type(message).__name__}")(message)
        elif self._launching:
            self._launching = False
            if how == "refused":
                self._world.harm += 1
                self.report(FaultKind.LAUNCH_FAILED)
            else:
                self._say(messages.Launched(()))
        elif self._reset is not None:
            self._begin_episode(how)
        elif self._episode is not None and self._asked():
            self._answer_step(self._next_step)
            self._next_step = "plain"

    def _game_can_act(self) -> bool:
        if not self._has_game:
            return False
        if self._launching or self._reset is not None:
            return True
        return self._episode is not None and self._asked() > 0

    def _say(self, message: Any) -> None:
        self.outbox.append(message)

    # Orders of the trainer.

    def _on_Start(self, _: messages.Start) -> None:
        pickled = self._world.schedule.pickled
        self._say(
            messages.Hello(
                NO_LAYOUT if pickled else SPACE,
                NO_LAYOUT if pickled else ACTIONS,
                {},
                None,
                self._player.strict,
                self._player.realtime,
            )
        )

    def _on_UseMemory(self, message: messages.UseMemory) -> None:
        layout = _LAYOUTS[self._world.schedule.pickled]
        row = memoryview(self._slots.memory)[message.offset_bytes :][: layout.size_bytes]
        self._slot = Slot(row, layout)
        self._pair = WorkerEnd(
            self._slot,
            SimpleNamespace(ring=self.process.reply_doorbell.ring, wake=lambda _: None),
            self._player,
            send_out_of_band=self._send_out_of_band,
            hold=self._hold,
        )

    def _on_Launch(self, _: messages.Launch) -> None:
        self._launching = True

    def _on_Reset(self, message: messages.Reset) -> None:
        if self._how == "stale" and self._episode is not None and self._asked():
            self._answer_step("info")
        self._reset = message
        self._episode = None
        self._out_of_band = None

    def _on_ActionOutOfBand(self, message: messages.ActionOutOfBand) -> None:
        self._out_of_band = message.sequence, pickle.loads(message.payload)

    def _on_Call(self, message: messages.Call) -> None:
        arguments = pickle.loads(message.payload)
        if message.operation == "set_attr":
            self._attribute = arguments[1]
        self._say(messages.Answer(message.number, pickle.dumps((self.number, *arguments))))

    def _on_Pause(self, _: messages.Pause) -> None:
        self.stopped = self._how != "refused"
        self._say(messages.Paused("" if self.stopped else "the game cannot be stopped"))

    def _on_Resume(self, _: messages.Resume) -> None:
        self.stopped = False
        self._say(messages.Resumed(0))

    def _on_Close(self, _: messages.Close) -> None:
        self.alive = False
        self.process.ends_if_empty()

    # Answers.

    def _begin_episode(self, how: str) -> None:
        reset, self._reset = self._reset, None
        assert reset is not None and self._pair is not None
        self.stopped = False
        self._can_hold = how != "refused"
        self._pair.begin(reset.sequence, hold=reset.hold)
        self._answered = reset.sequence
        self._episode = reset.episode
        if reset.options:
            self._episode = replace(reset.episode, options=pickle.loads(reset.options))
        self._step = 0
        self._attribute = pickle.loads(reset.attributes[0].get("attribute", pickle.dumps(0)))
        self._put(0, how if how in ("info", "late") else "plain")

    def _answer_step(self, how: str) -> None:
        assert self._pair is not None and self._slot is not None
        if self.stopped:
            self._world.broken(f"instance {self.number} is to step while its game is stopped")
        if self._out_of_band is not None:
            (self._answered, action), self._out_of_band = self._out_of_band, None
        else:
            self._answered, action = self._asked(), int(self._slot.action()[0])
        self._pair.begin(self._answered)
        self._pair.phase = Phase.STEPPING
        self._step += 1
        self._put(action, how)

    def _put(self, action: int, how: str) -> None:
        assert self._pair is not None
        info = {"told": self._row(action)} if how in ("info", "late", "told") else {}
        over, truncated = how in ("over", "told"), how == "truncated"
        self._is_late = how == "late"
        observation = np.array(self._row(action), np.int64)
        self._pair.put(Transition(observation, float(action), over, truncated, info))
        if over or truncated:
            self._episode = None

    def _row(self, action: int) -> tuple[int, ...]:
        episode = self._episode
        mark = episode.options.get("mark", 0)
        seed = 0 if episode.seed is None else episode.seed
        return (
            self.number,
            episode.number,
            self._step,
            action,
            mark,
            self._attribute,
            seed,
            WHOLE,
        )

    def _send_out_of_band(self, sequence: int, payload: bytes) -> None:
        (self._late if self._is_late else self.outbox).append(messages.OutOfBand(sequence, payload))

    def _hold(self) -> bool:
        if not self._can_hold:
            self._say(messages.NotHeld("the game cannot be held"))
        self.stopped = self._can_hold
        return self._can_hold

    # The end.

    def game_dies(self) -> None:
        """The trainer has killed the game."""
        self._has_game = False

    def report(self, kind: FaultKind) -> None:
        """The game has failed: report the fault, and end."""
        detail = "as the schedule says"
        self._say(messages.Faulted(Fault(kind, Phase.IDLE, detail), messages.Evidence()))
        self.alive = False

    def user_code_raises(self) -> None:
        """A hook of the user has raised: report the error, and end."""
        self._say(messages.Raised(None, "ValueError: a hook", "stepping", messages.Evidence()))
        self.alive = False

    def die(self) -> None:
        """The worker is killed at some instant, so a row may be half written."""
        if self.alive and self._slot is not None and (self._reset or self._episode):
            asked = self._reset.sequence if self._reset is not None else self._asked()
            if asked:
                for view in self._slot.place(asked).observation:
                    view[...] = -7
        self.alive = False
        self._late.clear()
