"""Adapters, each of which makes, resets and steps an env class; all return records of one form.

Every call returns records for `tests.support.audit.checker`, and then overwrites all arrays that it
sent and received. The arrays belong to the trainer, so the pool must not depend on them.

In the modes NEXT_STEP and DISABLED the first observation of the next episode comes one call after
the end of an episode. The adapter keeps an episode's last transition until its record is complete.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gymnasium.error import AlreadyPendingCallError
from gymnasium.vector import AutoresetMode

from sc2pool import SC2GymEnv, SC2VectorEnv, SubprocSC2VecEnv
from sc2pool.config import PoolConfig
from tests.support.audit.audited.bot import AuditBot
from tests.support.audit.audited.env import AuditEnv
from tests.support.audit.audited.match_task import AuditMatch
from tests.support.audit.audited.task import AuditTask, Stamp
from tests.support.audit.audited.team_task import AuditTeam, AuditTeamMatch
from tests.support.audit.checker import Began, Mark, Received, Record, Sent
from tests.support.audit.playing import next_actions, no_harm
from tests.support.audit.recording import from_batch, from_reset, from_step, mark_in
from tests.support.audit.scribble import scribble


class Adapter:
    """An env, with the calls that play it.

    Attributes:
        harm: the index in `tests.support.audit.audited.task.HARMS` of the harm that the next action
            of one env does.
        between: a function that the next step calls once, after it has sent the actions.
    """

    def __init__(self, env: Any) -> None:
        self.env = env
        self.pool = env.pool
        self.n: int = self.pool.n
        self.numbers = itertools.count()
        self.harm = 0
        self.between: Callable[[], None] | None = None

    def pause(self) -> None:
        """Pause the games."""
        self.env.pause()

    def resume(self) -> None:
        """Resume the games."""
        self.env.resume()

    def pending(self) -> None:
        """Call `between` once, after the actions were sent."""
        between, self.between = self.between, None
        if between is not None:
            between()

    def harms(self, rows: Iterable[int]) -> list[int]:
        """The harms of the next actions, namely `harm` for the first row and 0 for other rows."""
        harm, self.harm = self.harm, 0
        return [harm if place == 0 else 0 for place, _ in enumerate(rows)]

    def reset(self) -> list[Record]:
        observations = self.env.reset()
        records: list[Record] = [*from_reset(observations, self.env.reset_infos)]
        scribble(observations, self.env.reset_infos)
        return records

    def step(self) -> list[Record]:
        sent, actions = next_actions(range(self.env.num_envs), self.numbers, self.harms)
        self.env.step_async(actions)
        scribble(actions)
        self.pending()
        step = self.env.step_wait()
        records = [*sent, *from_step(step, self.env.reset_infos)]
        scribble(step, self.env.reset_infos)
        return records

    def method(self) -> None:
        """Call a method of every env."""
        self.env.env_method("__repr__")


class OnNodes(Adapter):
    """Plays on a Ray cluster; renumbers the faults, because each node numbers its own instances."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._faults = itertools.count()

    def reset(self) -> list[Record]:
        return [self._numbered(record) for record in super().reset()]

    def step(self) -> list[Record]:
        return [self._numbered(record) for record in super().step()]

    def _numbered(self, record: Record) -> Record:
        if isinstance(record, Sent):
            return record
        record = replace(record, mark=self._mark(record.mark))
        if isinstance(record, Received):
            record = replace(record, reset_mark=self._mark(record.reset_mark))
        return record

    def _mark(self, mark: Mark | None) -> Mark | None:
        return None if mark is None else mark._replace(instance=next(self._faults))


class FirstReady(Adapter):
    """Steps only the envs that are ready first, at least half of the envs at a time."""

    def reset(self) -> list[Record]:
        self._envs: Any = range(self.n)
        return super().reset()

    def step(self) -> list[Record]:
        sent, actions = next_actions(self.pool.rows_of(self._envs), self.numbers, self.harms)
        self.pool.send(actions, self._envs)
        scribble(actions)
        self.pending()
        batch = self.pool.recv(min_ready=max(1, self.n // 2))
        self._envs = batch.envs.tolist()
        records = [*sent, *from_batch(batch, self.pool.rows)]
        scribble(vars(batch))
        return records

    def pause(self) -> None:
        """Pause the games of the envs without a pending step."""
        self.pool.pause(self._envs)

    def resume(self) -> None:
        """Resume the games that `pause` has paused."""
        self.pool.resume(self._envs)


class Vector(Adapter):
    """gymnasium's vector env, in any of its autoreset modes."""

    _waits = True
    """False between the two parts of a step, where an interrupt leaves the step pending."""

    def reset(self) -> list[Record]:
        self._held: dict[int, Received] = {}
        try:
            observations, infos = self.env.reset()
        except AlreadyPendingCallError:
            if self._waits:
                raise
            self.env.step_wait()
            observations, infos = self.env.reset()
        records: list[Record] = [
            Began(env, Stamp.of(row), mark_of(infos, env)) for env, row in enumerate(observations)
        ]
        scribble(observations, infos)
        return records

    def step(self) -> list[Record]:
        mode = self.env.autoreset_mode
        begun: list[Record] = []
        if mode is AutoresetMode.DISABLED and self._held:
            mask = np.isin(np.arange(self.n), list(self._held))
            observations, infos = self.env.reset(options={"reset_mask": mask})
            begun = self._begun(observations, infos)
            scribble(observations, infos)
        playing = [env for env in range(self.n) if env not in self._held]
        sent, _ = next_actions(playing, self.numbers, no_harm)
        actions = np.zeros((self.n, 2), np.int64)
        actions[playing, 0] = [one.number for one in sent]
        actions[playing, 1] = self.harms(playing)
        self._waits = False
        self.env.step_async(actions)
        scribble(actions)
        self.pending()
        self._waits = True
        step = self.env.step_wait()
        begun += self._begun(step[0], step[-1])  # in NEXT_STEP
        records = [*begun, *sent, *self._received(playing, *step)]
        scribble(step)
        return records

    def _begun(self, observations: Any, infos: dict[str, Any]) -> list[Record]:
        held, self._held = self._held, {}
        return [
            replace(last, shown=Stamp.of(observations[env]), reset_mark=mark_of(infos, env))
            for env, last in held.items()
        ]

    def _received(
        self,
        playing: list[int],
        observations: Any,
        rewards: Any,
        *ends: Any,
    ) -> Iterator[Received]:
        terminated, truncated, infos = ends
        same_step = self.env.autoreset_mode is AutoresetMode.SAME_STEP
        for env in playing:
            shown, over = Stamp.of(observations[env]), bool(terminated[env] or truncated[env])
            mark, reset_mark = mark_of(infos, env), None
            if over and same_step:
                reset_mark = mark
                mark = mark_of(infos.get("final_info", {}), env)
                reset_mark = None if reset_mark == mark else reset_mark
            final = shown if over else None
            if over and same_step:
                final = Stamp.of(infos["final_obs"][env])
            got = Received(
                env,
                shown,
                float(rewards[env]),
                terminated=bool(terminated[env]),
                truncated=bool(truncated[env]),
                final=final,
                synthetic=bool(value_of(infos, "sc2pool.synthetic", env)),
                untold=bool(value_of(infos, "sc2pool.untold_end", env)),
                mark=mark,
                reset_mark=reset_mark,
            )
            if over and not same_step:
                self._held[env] = got
            else:
                yield got

    def method(self) -> None:
        self.env.call("__repr__")


class Gym(Adapter):
    """One env without autoreset."""

    def reset(self) -> list[Record]:
        self._held: Received | None = None
        observation, info = self.env.reset()
        began = Began(0, Stamp.of(observation), mark_in(info))
        scribble(observation, info)
        return [began]

    def step(self) -> list[Record]:
        records: list[Record] = []
        if self._held is not None:
            last = self._held
            observation, info = self.env.reset()
            self._held = None
            records.append(replace(last, shown=Stamp.of(observation), reset_mark=mark_in(info)))
            scribble(observation, info)
        number = next(self.numbers)
        harm = self.harms([0])[0]
        observation, reward, terminated, truncated, info = self.env.step(np.array([number, harm]))
        shown = Stamp.of(observation)
        got = Received(
            0,
            shown,
            float(reward),
            terminated=terminated,
            truncated=truncated,
            final=shown if terminated or truncated else None,
            synthetic=info.get("sc2pool.synthetic", False),
            untold="sc2pool.untold_end" in info,
            mark=mark_in(info),
        )
        scribble(observation, info)
        records.append(Sent(0, number))
        if terminated or truncated:
            self._held = got
        else:
            records.append(got)
        return records

    def method(self) -> None:
        self.pool.call([0], "has_attr", "unwrapped")


def value_of(infos: dict[str, Any], key: str, env: int) -> Any:
    """One env's value in a vector env's infos; None if the env has no such value."""
    return infos[key][env] if key in infos and infos[f"_{key}"][env] else None


def mark_of(infos: dict[str, Any], env: int) -> Mark | None:
    """The fault of one env in a vector env's infos."""
    if "sc2pool.fault" not in infos or not infos["_sc2pool.fault"][env]:
        return None
    fault = infos["sc2pool.fault"]
    return Mark(int(fault["instance"][env]), str(fault["kind"][env]))


class Setting(NamedTuple):
    """The arguments of an env's constructor."""

    n: int
    spares: int
    game: Path
    config: PoolConfig


@dataclass(frozen=True)
class Kind:
    """An env class, with the kind of games that it plays.

    Attributes:
        make: returns the adapter of a new env.
        games: whether the envs are games (and not a user's envs).
        realtime: whether the games run in real time.
        one: whether the class has a single env without spares.
        players: the number of players of a match; each player has a game.
        agents: the number of agents in a player's team.
        on_nodes: whether the games run on a Ray cluster.
    """

    make: Callable[[Setting], Adapter]
    games: bool = True
    realtime: bool = False
    one: bool = False
    players: int = 1
    agents: int = 1
    on_nodes: bool = False

    @property
    def rows(self) -> int:
        """The number of rows of an env."""
        return self.players * self.agents


def keywords(given: Setting, task: Any, a_worker: int | None) -> dict[str, Any]:
    """The arguments that all vector envs of a task share; `a_worker` sets `envs_per_worker`."""
    return {
        "task": task,
        "n": given.n,
        "spares": given.spares,
        "game": given.game,
        "config": replace(given.config, envs_per_worker=a_worker),
    }


def sb3(
    adapter: type[Adapter] = Adapter,
    task: Any = AuditTask,
    a_worker: int | None = None,
    **more: Any,
) -> Callable[[Setting], Adapter]:
    """A maker of Stable-Baselines3's env."""
    return lambda given: adapter(SubprocSC2VecEnv(**keywords(given, task, a_worker), **more))


def vector(
    mode: AutoresetMode, task: Any = AuditTask, a_worker: int | None = None
) -> Callable[[Setting], Adapter]:
    """A maker of gymnasium's vector env."""
    return lambda given: Vector(
        SC2VectorEnv(**keywords(given, task, a_worker), autoreset_mode=mode)
    )


def vector_of_envs(mode: AutoresetMode, at_once: int | None) -> Callable[[Setting], Adapter]:
    """A maker of gymnasium's vector env of a user's envs."""
    return lambda given: Vector(
        SC2VectorEnv(
            [AuditEnv] * given.n,
            config=given.config,
            autoreset_mode=mode,
            max_concurrency=at_once,
        )
    )


def gym(task: Any) -> Callable[[Setting], Adapter]:
    """A maker of gymnasium's env."""
    return lambda given: Gym(SC2GymEnv(task=task, game=given.game, config=given.config))


def on_nodes(a_worker: int | None = None) -> Callable[[Setting], Adapter]:
    """A maker of the env of a Ray cluster."""

    def make(given: Setting) -> Adapter:
        from sc2pool.ray import RaySC2VecEnv  # noqa: PLC0415 - only if Ray is needed

        return OnNodes(RaySC2VecEnv(**keywords(given, AuditTask, a_worker), node_timeout_s=120.0))

    return make


ADAPTERS = {
    "sb3": Kind(sb3()),
    "sb3, first ready": Kind(sb3(FirstReady)),
    "sb3, one a worker": Kind(sb3(a_worker=1)),
    "sb3, four a worker": Kind(sb3(a_worker=4)),
    "sb3, bots, four a worker": Kind(sb3(task=AuditBot, a_worker=4)),
    "sb3, matches, four a worker": Kind(sb3(task=AuditMatch, a_worker=4), players=2),
    "sb3, bot": Kind(sb3(task=AuditBot)),
    "sb3, matches": Kind(sb3(task=AuditMatch), players=2),
    "sb3, matches, first ready": Kind(sb3(FirstReady, AuditMatch), players=2),
    "sb3, team": Kind(sb3(task=AuditTeam), agents=2),
    "sb3, matches of teams": Kind(sb3(task=AuditTeamMatch), players=2, agents=2),
    "sb3, real time": Kind(sb3(realtime=True, step_mul=2), realtime=True),
    "sb3, envs": Kind(
        lambda given: Adapter(SubprocSC2VecEnv([AuditEnv] * given.n, config=given.config)),
        games=False,
    ),
    "vector, next step": Kind(vector(AutoresetMode.NEXT_STEP)),
    "vector, same step": Kind(vector(AutoresetMode.SAME_STEP)),
    "vector, same step, four a worker": Kind(vector(AutoresetMode.SAME_STEP, a_worker=4)),
    "vector, disabled": Kind(vector(AutoresetMode.DISABLED)),
    "vector, next step, bot": Kind(vector(AutoresetMode.NEXT_STEP, AuditBot)),
    "vector, next step, envs": Kind(vector_of_envs(AutoresetMode.NEXT_STEP, None), games=False),
    "vector, same step, envs, two at once": Kind(
        vector_of_envs(AutoresetMode.SAME_STEP, 2), games=False
    ),
    "vector, disabled, envs, two at once": Kind(
        vector_of_envs(AutoresetMode.DISABLED, 2), games=False
    ),
    "gym": Kind(gym(AuditTask), one=True),
    "gym, bot": Kind(gym(AuditBot), one=True),
    "ray": Kind(on_nodes(), on_nodes=True),
    "ray, four a worker": Kind(on_nodes(4), on_nodes=True),
}
"""Every adapter and mode, by name."""
