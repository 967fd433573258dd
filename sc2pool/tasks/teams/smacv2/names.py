"""Names of the numbers of an observation and of the state, in SMACv2's words.

Source: `StarCraft2Env.build_obs_feature_names` and `build_state_feature_names`. Rules: the order is
that of `sc2pool.tasks.teams.smac.features`; an observation is named as agent 0 sees it.
"""

from __future__ import annotations

from collections.abc import Iterator

from sc2pool.tasks.teams.smac.features import N_AROUND, N_HEIGHTS, Sizes

_DIRECTIONS = ("north", "south", "east", "west")


def observation_names(sizes: Sizes) -> list[str]:
    """The name of each number that an agent sees."""
    scenario, rules = sizes.scenario, sizes.rules
    names = [f"move_action_{direction}" for direction in _DIRECTIONS]
    names += [f"pathing_grid_{i}" for i in range(N_AROUND * rules.obs_pathing_grid)]
    names += [f"terrain_height_{i}" for i in range(N_HEIGHTS * rules.obs_terrain_height)]
    for enemy in range(scenario.n_enemies):
        names += _seen("enemy", "shootable", enemy, sizes, shield=sizes.shield_of_enemies)
    for ally in range(1, scenario.n_agents):
        names += _seen("ally", "visible", ally, sizes, shield=sizes.shield_of_allies)
        if rules.obs_last_action:
            names += _last_actions(ally, sizes)
    if rules.sees_own_health:
        names += ["own_health", *["own_shield"] * sizes.shield_of_allies]
    names += ["own_pos_x", "own_pos_y"] * rules.obs_own_pos
    names += [f"own_unit_type_bit_{i}" for i in range(scenario.n_types)]
    return names + ["timestep"] * rules.obs_timestep_number


def state_names(sizes: Sizes) -> list[str]:
    """The name of each number of the state.

    Raises:
        NotImplementedError: the state is all agents' observations.
    """
    scenario, rules = sizes.scenario, sizes.rules
    if rules.obs_instead_of_state:
        raise NotImplementedError("a state of all agents' observations has no names, as in SMACv2")
    names = []
    for i in range(scenario.n_agents):
        names += [f"ally_{word}_{i}" for word in ("health", "cooldown")]
        names += _place_and_rest("ally", i, sizes, shield=sizes.shield_of_allies)
    for i in range(scenario.n_enemies):
        names += [f"enemy_health_{i}"]
        names += _place_and_rest("enemy", i, sizes, shield=sizes.shield_of_enemies)
    if rules.state_last_action:
        for i in range(scenario.n_agents):
            names += _last_actions(i, sizes)
    return names + ["timestep"] * rules.state_timestep_number


def _seen(whose: str, first: str, i: int, sizes: Sizes, *, shield: int) -> Iterator[str]:
    """An agent's observation of another unit."""
    for word in (first, "distance", "relative_x", "relative_y"):
        yield f"{whose}_{word}_{i}"
    if sizes.rules.obs_all_health:
        yield f"{whose}_health_{i}"
        yield from [f"{whose}_shield_{i}"] * shield
    yield from _types(whose, i, sizes)


def _place_and_rest(whose: str, i: int, sizes: Sizes, *, shield: int) -> Iterator[str]:
    for word in ("relative_x", "relative_y"):
        yield f"{whose}_{word}_{i}"
    yield from [f"{whose}_shield_{i}"] * shield
    yield from _types(whose, i, sizes)


def _types(whose: str, i: int, sizes: Sizes) -> Iterator[str]:
    for bit in range(sizes.scenario.n_types):
        yield f"{whose}_unit_type_{i}_bit_{bit}"


def _last_actions(i: int, sizes: Sizes) -> Iterator[str]:
    for action in range(sizes.n_actions):
        yield f"ally_last_action_{i}_action_{action}"
