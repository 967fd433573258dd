"""A user's program with all public names and both forms of each hook; mypy checks it strictly.

The program is not run. If mypy finds an error here, users of sc2pool would get the same error.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from s2clientprotocol import raw_pb2
from sc2.position import Point2
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecMonitor

from sc2pool import (
    ActionError,
    ClosedError,
    Computer,
    ConfigError,
    CrashLoopError,
    GameFault,
    Limits,
    ObservationError,
    PauseCallback,
    PauseError,
    PolicyBot,
    PoolConfig,
    PoolStatsCallback,
    QueuePair,
    RecyclePolicy,
    ReplayPolicy,
    RestartPolicy,
    RLBotAI,
    SC2GymEnv,
    SC2PoolError,
    SC2VectorEnv,
    SubprocSC2VecEnv,
    Task,
    UserCodeError,
    __version__,
    commands,
)
from sc2pool.errors import FaultKind
from sc2pool.realtime.gate import PauseGate
from sc2pool.render.frame import draw
from sc2pool.units import NEUTRAL, Kind, Units, distances, health, select, weapon_cooldown

BEACONS = Kind("Beacon_Terran", NEUTRAL)
OWN_MARINES = Kind("Marine")

Seen = NDArray[np.float32]
Orders = list[raw_pb2.ActionRawUnitCommand]


class Walk(Task):
    map_name = "MoveToBeacon"
    step_mul = 4
    max_loops = 1920
    observation_space = spaces.Box(-200, 200, (2,), np.float32)
    action_space = spaces.Box(-4, 4, (2,), np.float32)
    opponents = (Computer(),)
    disable_fog = True
    metadata = {"render_modes": ["rgb_array"], "render_fps": 7}  # noqa: RUF012

    marines: Units
    beacons: Units

    def on_start(self) -> None:
        options: Mapping[str, Any] = self.options
        self.fast = bool(options.get("fast", False))
        self.width = self.game_info.start_raw.map_size.x

    def observe(self) -> Seen:
        self.marines, self.beacons = select(self.lazy_observation, OWN_MARINES, BEACONS)
        ready = weapon_cooldown(self.marines) == 0
        near = distances(self.marines.positions, self.beacons.positions).min()
        return np.array([near, health(self.marines)[ready].mean()], np.float32)

    def act(self, action: Seen) -> Orders:
        x, y = (self.marines.positions[0] + action).tolist()
        return [commands.move(self.marines.tags, (x, y)), commands.stop(self.marines.tags)]

    def reward(self) -> float:
        return self.score_change - 0.001

    def terminated(self) -> bool:
        return self.lazy_observation.score >= 5

    def info(self) -> dict[str, Any]:
        return {"refused": sum(result != 1 for result in self.action_results)}

    def action_masks(self) -> NDArray[np.bool_]:
        return np.ones(8, np.bool_)

    def render(self) -> NDArray[np.uint8]:
        return draw(self.game_info, self.observation, title="Walk", figures={"fast": self.fast})


class AsyncHooks:
    async def on_start(self) -> None: ...

    async def observe(self) -> Seen:
        return np.zeros(2, np.float32)

    async def reward(self) -> float:
        return 1.0

    async def terminated(self) -> bool:
        return False

    async def info(self) -> dict[str, Any]:
        return {}


class AsyncWalk(AsyncHooks, Task):
    map_name = "MoveToBeacon"
    observation_space = spaces.Box(-200, 200, (2,), np.float32)
    action_space = spaces.Discrete(3)

    async def act(self, action: int) -> Orders:
        return []


class WalkBot(RLBotAI):
    map_name = "MoveToBeacon"
    observation_space = spaces.Box(-200, 200, (2,), np.float32)
    action_space = spaces.Box(-4, 4, (2,), np.float32)

    def observe(self) -> Seen:
        return np.array(self.units.first.position, np.float32)

    def act(self, action: Seen) -> None:
        self.units.first.move(Point2((float(action[0]), float(action[1]))))

    def reward(self) -> float:
        return self.score_change

    def terminated(self) -> bool:
        return self.episode_over


class AsyncBot(AsyncHooks, RLBotAI):
    map_name = "MoveToBeacon"
    observation_space = spaces.Box(-200, 200, (2,), np.float32)
    action_space = spaces.Discrete(3)

    async def act(self, action: int) -> None: ...


def with_sb3() -> float:
    config = PoolConfig(
        limits=Limits(launch_s=300.0),
        restart=RestartPolicy(per_env=3),
        recycle=RecyclePolicy(episodes=100),
        replays=ReplayPolicy(Path("replays"), every=10),
        metrics_port=9464,
    )
    env = SubprocSC2VecEnv(
        n=8, task=Walk, game="auto", seed=1, spares=2, render_mode="rgb_array", config=config
    )
    env.reset()
    _, rewards, dones, infos = env.step(np.zeros((8, 2)))
    env.pool.send([np.zeros(2)], [3])
    batch = env.pool.recv(min_ready=1)
    env.pause()
    env.resume(indices=[0, 1])
    masks = env.env_method("action_masks")
    images = env.get_images()
    model = PPO("MlpPolicy", VecMonitor(env))
    model.learn(10, callback=[PoolStatsCallback(), PauseCallback()])
    for bot in (PolicyBot("MoveToBeacon", model), PolicyBot(Walk, model)):
        print(bot)
    print(dones.any(), infos[0], masks, images, env.stats().env_steps, __version__)
    env.close()
    return float(rewards.sum()) + float(batch.rewards.sum())


def shortest() -> None:
    for env in (SubprocSC2VecEnv(8), SubprocSC2VecEnv("MoveToBeacon"), SubprocSC2VecEnv(Walk)):
        env.close()
    for envs in (SC2VectorEnv(2), SC2VectorEnv(Walk, n=2, step_mul=4, max_loops=1000)):
        print(envs.step_mul)
        envs.close()


def of_the_users_own() -> None:
    SubprocSC2VecEnv([lambda: gymnasium.make("CartPole-v1")] * 2, start_method="fork").close()
    SC2VectorEnv([lambda: gymnasium.make("CartPole-v1")] * 2).close()


def with_gymnasium() -> float:
    env: gymnasium.Env[Any, Any] = SC2GymEnv(task="DefeatRoaches")
    env.close()
    one = SC2GymEnv(task=WalkBot, render_mode="rgb_array", realtime=True, step_mul=4)
    one.reset(seed=1, options={"fast": True})
    _, reward, terminated, truncated, info = one.step(np.zeros(2))
    masks = one.action_masks()
    if masks is not None:
        one.action_space.sample(masks.astype(np.int8))
    one.pause()
    one.resume()
    print(terminated or truncated, info, one.render(), one.stats())
    one.close()
    envs = SC2VectorEnv(n=2, task=AsyncWalk, autoreset_mode=AutoresetMode.SAME_STEP)
    envs.reset(seed=[1, 2], options={"reset_mask": np.array([True, False])})
    envs.step_async(np.array([1, 2]))
    _, rewards, terminations, truncations, _ = envs.step_wait(timeout=3)
    envs.set_attr("gain", [1.0, 2.0])
    print((terminations | truncations).any(), envs.call("action_masks"), envs.stats())
    envs.close()
    return reward + float(rewards.sum())


def without_a_pool() -> None:
    pair = QueuePair.local()
    transition = pair.receive(30)
    while not (transition.terminated or transition.truncated):
        pair.send(np.zeros(2))
        transition = pair.receive(30)
    for bot in (WalkBot(pair), AsyncBot(policy=lambda observation: 1)):
        print(bot.episode_over, Kind(45, raw_pb2.Self))
    with PauseGate(1) as gate:
        gate.pause()
        gate.resume()


def errors() -> str:
    try:
        return str(with_sb3())
    except (ActionError, ConfigError, ObservationError, UserCodeError) as error:
        return f"mine: {error}"
    except (ClosedError, CrashLoopError, PauseError) as error:
        return f"the pool's: {error}"
    except GameFault as fault:
        return f"{fault.kind is FaultKind.BAD_REPLY}: {fault.detail}"
    except SC2PoolError:
        raise
