"""Names for adapters, trainers and programs that work with pools, games and tasks.

    players = make_players("MoveToBeacon", n=2)  # checks the keywords of an env class
    with closing(players.make_pool()) as pool:  # see `sc2pool.pool.pool.Pool`
        batch = pool.reset()

The adapters for SMAC, tianshou, PettingZoo and Ray, AsyncPPO, the datasets and the commands use
only these names, `sc2pool.utilities`, and the names in the reference. The page "Integration"
describes each name. The module that defines a name is imported on the first use of the name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from sc2pool.envs.arguments import (
        begin_episodes as begin_episodes,
        seed_of_each as seed_of_each,
    )
    from sc2pool.envs.sb3 import PoolVecEnv as PoolVecEnv
    from sc2pool.envs.shared_keywords import (
        EnvFns as EnvFns,
        GameChoice as GameChoice,
        GameKeywords as GameKeywords,
        PoolKeywords as PoolKeywords,
        TaskChoice as TaskChoice,
        check_keywords as check_keywords,
        games_of_one_row as games_of_one_row,
        make_players as make_players,
    )
    from sc2pool.game.hang_detection import SLOW_FACTOR as SLOW_FACTOR
    from sc2pool.game.program.installation import (
        Installation as Installation,
        find_installation as find_installation,
        find_map as find_map,
        write_stand_in as write_stand_in,
    )
    from sc2pool.game.program.lease import MOST_GAMES as MOST_GAMES
    from sc2pool.pool.batch import check_actions as check_actions
    from sc2pool.pool.instances.restart import restarts_exceeded as restarts_exceeded
    from sc2pool.pool.machine import living_runs as living_runs, trainer_of as trainer_of
    from sc2pool.pool.queues.layout import SpaceLayout as SpaceLayout, space_layout as space_layout
    from sc2pool.pool.report import live_files as live_files
    from sc2pool.pool.report.snapshot import (
        merge_curves as merge_curves,
        merge_stats as merge_stats,
        stats_from_dict as stats_from_dict,
    )
    from sc2pool.pool.report.pages import listen_for_page as listen_for_page
    from sc2pool.pool.runtime import warn_of_owner as warn_of_owner
    from sc2pool.pool.measures import Rates as Rates
    from sc2pool.pool.vec_pool import (
        VecPool as VecPool,
        refuse_to_travel as refuse_to_travel,
        whole_mask as whole_mask,
    )
    from sc2pool.pretrained import pretrained as pretrained
    from sc2pool.protocol import LOOPS_PER_S as LOOPS_PER_S
    from sc2pool.protocol.compiled import STEP_PATH as STEP_PATH
    from sc2pool.realtime.rllib import (
        after_each_training_step as after_each_training_step,
        log_growth as log_growth,
    )
    from sc2pool.tasks.task import (
        TaskDefinition as TaskDefinition,
        agents_of as agents_of,
        row_space as row_space,
    )
    from sc2pool.tasks.minigames.scores import scores_of as scores_of
    from sc2pool.tasks.opponents.models import SavedModel as SavedModel, save_model as save_model
    from sc2pool.tasks.opponents.policies import Policy as Policy
    from sc2pool.tasks.opponents.resolve import InTurn as InTurn, yardsticks as yardsticks
    from sc2pool.tasks.registry import (
        DEFAULT_TASK as DEFAULT_TASK,
        TASK_GROUPS as TASK_GROUPS,
        TASK_PLACES as TASK_PLACES,
        available_tasks as available_tasks,
        built_in_name as built_in_name,
        resolve_task as resolve_task,
        scripted_player as scripted_player,
        spelled_task as spelled_task,
    )
    from sc2pool.tasks.teams.smac_battle import smac_battle as smac_battle
    from sc2pool.tasks.teams.smacv2 import (
        observation_names as observation_names,
        state_names as state_names,
    )


_NAMES = {
    "sc2pool.envs.arguments": "begin_episodes seed_of_each",
    "sc2pool.envs.sb3": "PoolVecEnv",
    "sc2pool.envs.shared_keywords": (
        "EnvFns GameChoice GameKeywords PoolKeywords TaskChoice check_keywords games_of_one_row "
        "make_players"
    ),
    "sc2pool.game.hang_detection": "SLOW_FACTOR",
    "sc2pool.game.program.installation": "Installation find_installation find_map write_stand_in",
    "sc2pool.game.program.lease": "MOST_GAMES",
    "sc2pool.pool.batch": "check_actions",
    "sc2pool.pool.instances.restart": "restarts_exceeded",
    "sc2pool.pool.machine": "living_runs trainer_of",
    "sc2pool.pool.queues.layout": "SpaceLayout space_layout",
    "sc2pool.pool.report.live_files": "live_files",
    "sc2pool.pool.report.snapshot": "merge_curves merge_stats stats_from_dict",
    "sc2pool.pool.report.pages": "listen_for_page",
    "sc2pool.pool.runtime": "warn_of_owner",
    "sc2pool.pool.measures": "Rates",
    "sc2pool.pool.vec_pool": "VecPool refuse_to_travel whole_mask",
    "sc2pool.pretrained": "pretrained",
    "sc2pool.protocol": "LOOPS_PER_S",
    "sc2pool.protocol.compiled": "STEP_PATH",
    "sc2pool.realtime.rllib": "after_each_training_step log_growth",
    "sc2pool.tasks.task": "TaskDefinition agents_of row_space",
    "sc2pool.tasks.minigames.scores": "scores_of",
    "sc2pool.tasks.opponents.models": "SavedModel save_model",
    "sc2pool.tasks.opponents.policies": "Policy",
    "sc2pool.tasks.opponents.resolve": "InTurn yardsticks",
    "sc2pool.tasks.registry": (
        "DEFAULT_TASK TASK_GROUPS TASK_PLACES available_tasks built_in_name resolve_task "
        "scripted_player spelled_task"
    ),
    "sc2pool.tasks.teams.smac_battle": "smac_battle",
    "sc2pool.tasks.teams.smacv2": "observation_names state_names",
}
"""For each defining module, the names that this module exports from it."""
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(_HOMES[name])
    return getattr(home, name, home)  # `live_files` is a module itself
