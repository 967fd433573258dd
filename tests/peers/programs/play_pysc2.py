"""Plays episodes of a mini-game with pysc2's scripted agent; prints their scores as JSON.

Usage: `python tests/peers/programs/play_pysc2.py NAME EPISODES`.

The program runs in the environment that `tests/peers/run_pysc2.py` makes, with SC2PATH set.
"""

from __future__ import annotations

import json
import sys

from absl import flags
from pysc2.agents import scripted_agent
from pysc2.env import sc2_env

STEP_MUL = 8


def main(name: str, episodes: int) -> list[int]:
    agent = getattr(scripted_agent, name)()
    sizes = sc2_env.Dimensions(screen=84, minimap=64)
    with sc2_env.SC2Env(
        map_name=name,
        players=[sc2_env.Agent(sc2_env.Race.terran)],
        agent_interface_format=sc2_env.AgentInterfaceFormat(feature_dimensions=sizes),
        step_mul=STEP_MUL,
        random_seed=1,
    ) as env:
        agent.setup(env.observation_spec()[0], env.action_spec()[0])
        return [play(env, agent) for _ in range(episodes)]


def play(env: sc2_env.SC2Env, agent: scripted_agent.base_agent.BaseAgent) -> int:
    agent.reset()
    (step,) = env.reset()
    score = 0
    while not step.last():
        (step,) = env.step([agent.step(step)])
        score += step.reward
    return int(score)


if __name__ == "__main__":
    flags.FLAGS([sys.argv[0]])
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]))))
