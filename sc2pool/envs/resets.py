"""How a trainer's reset, with its seeds and options, becomes episodes of the pool.

`SC2VectorEnv` and `SC2TianshouVectorEnv` share it. Rule: a reset of a task's envs without seed and
options takes the next episodes, as an autoreset does, so spares may have them ready.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sc2pool.envs.vector.arguments import Seeds, seed_of_each, seeds_of_tasks
from sc2pool.pool.episodes import Request
from sc2pool.pool.pool import Pool


def begin_episodes(
    pool: Pool, envs: Sequence[int], seed: Seeds, options: Mapping[str, Any], *, is_task: bool
) -> None:
    """Begin an episode in each of these envs; of all of them, drop first what is pending.

    Args:
        envs: ascending.
        seed: as `SC2VectorEnv.reset` takes it; a list has one for each row, of which each env's
            first counts.

    Raises:
        ValueError: not as many seeds as rows.
        ConfigError: a seed that is not a whole number of at least 0.
    """
    seeds, run_seed = seed_of_each(seed, pool.n_rows)[:: pool.rows], None
    if is_task:
        seeds, run_seed = seeds_of_tasks(seed, seeds, envs)
    seeded = any(seeds[env] is not None for env in envs)

    requests: list[Request] | None
    requests = [Request(seeds[env], options, both_keywords=True) for env in envs]
    if is_task and not seeded and not options:
        requests = None
    if run_seed is not None:
        pool.seed(run_seed)
    if len(envs) == pool.n:
        pool.drop()  # what an interrupted call has left
    pool.begin(envs, requests)
