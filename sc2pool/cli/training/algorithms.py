"""The choices for a training, as data: algorithm, hyperparameters, and mode of self-play.

`ALGORITHMS` has each algorithm's class and supported action spaces. `--self-play MODE` is one of
four modes:

    Mode shared: both sides of each match are rows of the learner; this is the default.
    Mode latest: the opponent is the newest snapshot of the learner.
    Mode uniform: half of the matches are against the newest snapshot, half against any snapshot.
    Mode prioritised: like uniform, but prefers snapshots that the learner beats less often.

Hyperparameters are read from the bundled files in `defaults`, or from a user's YAML file:

    The section `default` is for every task that has no section of its own.
    `n_timesteps` is the number of env steps of a whole training, over all games.
    `n_envs` is the number of games.
    `reward_scale` is the factor by which the algorithm's rewards are multiplied (default: 1).
    `policy` is SB3's name of a policy (default: one that suits the observations).
    All other keys are arguments of the algorithm, for example `n_steps`.
    The key `minibatches`, the number of equal parts of a rollout, may replace `batch_size`.
    The value `lin_1e-3` is a learning rate that falls linearly to 0.
    `policy_kwargs` is a mapping, or a text in the form "dict(…)" of RL Zoo.

The format is that of RL Baselines3 Zoo, but without the Zoo's wrappers. A section inherits nothing
from the section `default`: a missing argument has the algorithm's default value. YAML's `<<: *name`
copies another section into the present one.

Rule: this module imports neither numpy nor torch, so help and refusals are printed without delay.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sc2pool.errors import ConfigError
from sc2pool.utilities import check_levels, printable, read_yaml, require, shown

if TYPE_CHECKING:
    from sc2pool.integration import TaskDefinition

_SB3 = "stable_baselines3"
_CONTRIB = "sb3_contrib"
_ARRAYS = ("Box", "Discrete", "MultiDiscrete", "MultiBinary")
"""The spaces that Stable-Baselines3 supports."""
_ACTOR_CRITIC = ("n_steps", "gae_lambda", "gamma")
_PROXIMAL = (*_ACTOR_CRITIC, "n_epochs", "clip_range")
_PPO_FILE = "ppo.yml"
_REPLAYING = ("buffer_size", "learning_starts", "train_freq", "gamma")


@dataclass(frozen=True)
class Algorithm:
    module: str
    class_name: str
    attributes: tuple[str, ...]
    """Attributes of this algorithm's saved models that most other algorithms' models lack."""
    lacks: tuple[str, ...] = ()
    """Attributes of similar algorithms' saved models that this algorithm's models lack."""
    policy_module: str = "stable_baselines3.common.policies"
    """The module of the class of a saved model's policy."""
    optimizers: tuple[str, ...] = ("policy",)
    actions: tuple[str, ...] = _ARRAYS
    """The supported action spaces, from the algorithm's documentation."""
    policy_infix: str = ""
    """The text to insert into the policies' names, as `Lstm` into `MlpPolicy`."""
    hyperparameters: str = ""
    """The name of the file in `defaults`; if empty, the algorithm's own defaults are used."""
    uses_masks: bool = False
    plays_on: bool = False
    """True if games in real time continue while the algorithm learns; False if they are paused."""

    def load_class(self) -> type[Any]:
        """The algorithm's class; imports torch."""
        return getattr(import_module(self.module), self.class_name)  # type: ignore[no-any-return]


def _off_policy(
    module: str, class_name: str, own: str, actions: str, hyperparameters: str = ""
) -> Algorithm:
    """An algorithm with a replay buffer; most other algorithms' models lack the attribute `own`."""
    return Algorithm(
        module,
        class_name,
        (*_REPLAYING, own),
        policy_module=f"{module}.{class_name.lower()}.policies",
        optimizers=("actor", "critic") if actions == "Box" else ("policy",),
        actions=(actions,),
        hyperparameters=hyperparameters,
    )


_SYNCHRONOUS: Final = {
    "ppo": Algorithm(_SB3, "PPO", _PROXIMAL, hyperparameters=_PPO_FILE),
    "a2c": Algorithm(
        _SB3, "A2C", _ACTOR_CRITIC, lacks=("n_epochs", "cg_max_steps"), hyperparameters="a2c.yml"
    ),
    "dqn": _off_policy(_SB3, "DQN", "exploration_fraction", "Discrete", "dqn.yml"),
    "sac": _off_policy(_SB3, "SAC", "target_entropy", "Box"),
    "td3": _off_policy(_SB3, "TD3", "policy_delay", "Box"),
    "maskable-ppo": Algorithm(
        _CONTRIB,
        "MaskablePPO",
        _PROXIMAL,
        policy_module="sb3_contrib.common.maskable.policies",
        actions=("Discrete", "MultiDiscrete", "MultiBinary"),
        hyperparameters=_PPO_FILE,
        uses_masks=True,
    ),
    "recurrent-ppo": Algorithm(
        _CONTRIB,
        "RecurrentPPO",
        _PROXIMAL,
        policy_module="sb3_contrib.common.recurrent.policies",
        policy_infix="Lstm",
        hyperparameters=_PPO_FILE,
    ),
    "trpo": Algorithm(_CONTRIB, "TRPO", (*_ACTOR_CRITIC, "cg_max_steps")),
    "qrdqn": _off_policy(_CONTRIB, "QRDQN", "n_quantiles", "Discrete"),
    "tqc": _off_policy(_CONTRIB, "TQC", "top_quantiles_to_drop_per_net", "Box"),
}
_ASYNCHRONOUS = {
    f"async-{name}": replace(
        _SYNCHRONOUS[name],
        module="sc2pool",
        class_name=f"Async{_SYNCHRONOUS[name].class_name}",
        plays_on=True,
    )
    for name in ("ppo", "dqn", "sac", "td3")
}
ALGORITHMS: Final = _SYNCHRONOUS | _ASYNCHRONOUS
"""The algorithms by their names for `--algo`."""


def check_algorithm(name: str, task: type[TaskDefinition]) -> None:
    """Check that an algorithm is installed and can learn a task's observations and actions.

    Raises `ConfigError` with the reason, or `MissingPackageError` for a missing package.
    """
    algorithm = ALGORITHMS[name]
    if algorithm.module == _CONTRIB:
        require(f"--algo {name}", algorithm.module)
    space = type(task.action_space).__name__
    if space not in algorithm.actions:
        able = [one for one, other in ALGORITHMS.items() if space in other.actions]
        raise ConfigError(
            f"--algo {name} plays {' and '.join(algorithm.actions)} actions, and those of "
            f"{task.__name__} are {space}: {', '.join(able) or 'none of them'} can"
        )
    start = getattr(task.action_space, "start", None)
    if start is not None and start.any():
        raise ConfigError(
            f"the algorithms count actions from 0, and those of {task.__name__} begin at {start}"
        )
    observed = task.observation_space
    parts = observed.values() if isinstance(observed, Mapping) else [observed]
    wrong = {type(part).__name__ for part in parts}.difference(_ARRAYS)
    if wrong:
        raise ConfigError(
            f"the algorithms take {', '.join(_ARRAYS)} observations and a Dict of them, and those "
            f"of {task.__name__} are {', '.join(sorted(wrong))}"
        )
    if algorithm.uses_masks and not hasattr(task, "action_masks"):
        raise ConfigError(
            f"--algo {name} needs a task with action_masks(), and {task.__name__} has none"
        )


SHARED: Final = "shared"
MODES: Final = (SHARED, "latest", "uniform", "prioritised")
LATEST_SHARE: Final = 0.5
"""The share of matches against the newest snapshot, which resembles the learner's next opponents.
Matches against older snapshots keep the learner from forgetting how to beat them."""
PARTS: Final = 20
"""The number of snapshots that a run saves by default."""
EVALUATIONS: Final = 10
LEAST_BETWEEN: Final = 5_000
"""The minimum of env steps between two evaluations, so that short runs do not mostly evaluate."""
GAMES: Final = 20
"""The number of games that an evaluation plays against each opponent."""


def choose_self_play(chosen: str | None, earlier: str | None, task: type[TaskDefinition]) -> str:
    """The mode that was chosen, else that of the resumed run, else the default; "" for one player.

    Raises `ConfigError` if a mode was chosen for a task of one player.
    """
    if task.players == 2:
        return chosen or earlier or SHARED
    if chosen:
        raise ConfigError(
            f"--self-play {chosen}: it needs a task of two players, and {task.__name__} has "
            f"{task.players}"
        )
    return ""


_DEFAULTS = Path(__file__).with_name("defaults")
_DEFAULT_SECTION = "default"
LARGEST: Final = 1 << 62
"""Numbers larger than this may not fit into the 64-bit integers of torch and numpy."""
_OWN_NUMBERS = ("n_timesteps", "n_envs", "minibatches")


@dataclass(frozen=True)
class Hyperparameters:
    """The hyperparameters in a section of a file."""

    n_timesteps: int = 1_000_000
    n_envs: int = 8
    policy: str | None = None
    minibatches: int | None = None
    """The number of minibatches of a rollout, from which `batch_size` is computed."""
    reward_scale: float = 1.0
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """All other values of the section, which are arguments of the algorithm."""

    @classmethod
    def of(cls, section: Mapping[str, Any], where: str) -> Hyperparameters:
        """Read a section; for a wrong value, raise a `ConfigError` whose message has `where`."""
        arguments = dict(section)
        numbers = {
            name: whole_number_of(arguments.pop(name), f"{where}: {name}")
            for name in _OWN_NUMBERS
            if name in arguments
        }
        if "minibatches" in numbers and "batch_size" in arguments:
            raise ConfigError(f"{where}: either batch_size or minibatches, not both")
        reward_scale = number_of(arguments.pop("reward_scale", 1.0))
        if type(reward_scale) not in (int, float) or not 0 < reward_scale < LARGEST:
            raise ConfigError(f"{where}: reward_scale must be above 0, got {shown(reward_scale)}")
        policy = arguments.pop("policy", None)
        if not isinstance(policy, str | None):
            raise ConfigError(f"{where}: policy must be a name, got {shown(policy)}")
        if isinstance(arguments.get("policy_kwargs"), str):
            arguments["policy_kwargs"] = _read_call(arguments["policy_kwargs"], where)
        return cls(**numbers, policy=policy, reward_scale=reward_scale, arguments=arguments)


def _read_call(text: str, where: str) -> dict[str, Any]:
    """Read values in RL Zoo's form, such as `dict(net_arch=[64, 64], activation_fn=nn.Tanh)`.

    No code is run: a value is a literal, a dict, or a name, which stays a text. Raises
    `ConfigError` for anything else.
    """

    def value_of(node: ast.expr) -> Any:
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "dict" and not node.args:
            return {str(one.arg): value_of(one.value) for one in node.keywords if one.arg}
        if isinstance(node, ast.Name | ast.Attribute):
            return ast.unparse(node)
        return ast.literal_eval(node)

    try:
        found = value_of(ast.parse(text.strip(), mode="eval").body)
        check_levels(found)
    except Exception:  # deep nesting raises RecursionError or MemoryError
        found = None
    if not isinstance(found, dict):
        raise ConfigError(
            f"{where}: policy_kwargs must be `dict(name=value, …)`, got {shown(text)}"
        )
    return found


def number_of(value: Any) -> Any:
    """Convert a text to a number if possible, because YAML reads `1e-3` as a text."""
    if isinstance(value, str):
        with suppress(ValueError):
            return float(value)
    return value


def whole_number_of(value: Any, what: str) -> int:
    """Convert to a whole number above 0, or raise a `ConfigError` whose message has `what`."""
    number = number_of(value)
    if type(number) not in (int, float) or not 1 <= number < LARGEST or number % 1:
        raise ConfigError(f"{what} must be a whole number above 0, got {shown(value)}")
    return int(number)


def read_hyperparameters(algo: str, task: str, file: Path | None = None) -> Hyperparameters:
    """A task's hyperparameters, from the user's file if there is one, else from the bundled file.

    Raises `ConfigError` if the file cannot be read, has another format, or lacks a section for the
    task.
    """
    if file is None:
        bundled = ALGORITHMS[algo].hyperparameters
        if not bundled:
            return Hyperparameters()
        file = _DEFAULTS / bundled
    sections = read_yaml(file)
    if not isinstance(sections, dict):
        raise ConfigError(f"{file}: expected sections, one for each task, got {shown(sections)}")
    name = task if task in sections else _DEFAULT_SECTION
    if name not in sections:
        raise ConfigError(
            f"{file} has no section {task} and no section {_DEFAULT_SECTION}; "
            f"it has {printable(', '.join(map(str, sections))) or 'none'}"
        )
    section = sections[name]
    where = f"{file}, section {name}"
    if not isinstance(section, dict) or not all(isinstance(key, str) for key in section):
        raise ConfigError(f"{where}: expected `name: value` lines, got {shown(section)}")
    return Hyperparameters.of(section, where)
