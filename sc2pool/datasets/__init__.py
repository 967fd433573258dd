"""Episodes of a pool as a dataset in Minari's format, for learning without a game.

    `writer = MinariWriter("sc2pool/MoveToBeacon/mine-v0", env.observation_space, env.action_space)`
    `collector = EpisodeCollector(writer.add)`: The collector calls `add` with each episode.

`EpisodeCollector` joins the steps of a VecEnv into complete episodes. Rule: each step copies the
batch once. A row's part is extracted from these copies only when the row's episode is over.

`MinariWriter` writes episodes in shards:

    `data/metadata.json`: Minari's metadata.
    `data/main_data.hdf5`: Minari's data, with `episode_0`, `episode_1`, … as links to the shards.
    `data/shard-00000.hdf5`: Episodes, some tens of thousands of steps, written by Minari's code.

Rules: the folder is created atomically. After the folder, shards, links and metadata are written in
this order, each of them atomically. So if the program ends at any time, at most the episodes since
the last shard are lost. A dataset is resumed from its shards, even if its other files are damaged.
Only one recorder at a time writes into a dataset; it holds a lock next to the folder. The memory
holds the episodes of one shard, and two more copies of them while the shard is written. Images are
stored without loss. HDF5 writes only to memory, and Python writes the file. HDF5 itself would crash
with a segmentation fault if the disk refused a write while HDF5 closes a file.

Minari is imported on first use, so `import sc2pool.datasets` works without it.
"""

from __future__ import annotations

import json
import logging
import shutil
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from sc2pool.errors import ConfigError
from sc2pool.utilities import (
    needed_for,
    new_folder,
    read_json,
    remove_unfinished,
    replacing,
    reserve,
    unlock_and_remove,
)

__all__ = ["EpisodeCollector", "MinariWriter", "check_dataset", "folder_of"]


@dataclass(frozen=True)
class RecordedEpisode:
    """A complete episode of one row, of T steps."""

    observations: Any
    """Arrays with a first axis of length T + 1, in the structure of the space."""
    actions: Any
    """Arrays with a first axis of length T, in the structure of the space."""
    rewards: np.ndarray[Any, np.dtype[np.float64]]
    terminated: bool
    """True if the last step terminated the episode; False if it truncated the episode."""
    fault: str | None
    """The kind of the fault that ended the episode; None without a fault."""

    @property
    def steps(self) -> int:
        """The number of steps, T."""
        return len(self.rewards)


class _Step(NamedTuple):
    observations: Any
    """The observations on which the actions of this step are based."""
    actions: Any
    rewards: Any


class EpisodeCollector:
    """Calls `take` with each complete episode of every row, and drops unfinished episodes.

    Args:
        take: A function that is called with each episode.
        keeps_faulty: True if `take` also gets episodes that a fault ended.
    """

    def __init__(
        self, take: Callable[[RecordedEpisode], None], *, keeps_faulty: bool = False
    ) -> None:
        self._take = take
        self._keeps_faulty = keeps_faulty
        self._steps: deque[_Step] = deque()
        self._ages: list[int] = []
        """The length of each row's running episode, in steps."""
        self._midway: set[int] = set()
        """The rows whose running episode had begun before `begin`."""

    def begin(self, observations: Any, *, midway: bool = False) -> None:
        """Record the first observations of all rows.

        Args:
            observations: The observations of all rows.
            midway: True to drop the rows' first episodes, which may have begun earlier.
        """
        self._steps.clear()
        self._now = over_leaves(np.array, observations)
        n_rows = len(next(leaves_of(observations)))
        self._ages = [0] * n_rows
        self._midway = set(range(n_rows)) if midway else set()

    def step(
        self,
        actions: Any,
        observations: Any,
        rewards: Any,
        over: Any,
        infos: Sequence[dict[str, Any]],
    ) -> None:
        """Record a step of all rows, from the argument and the results of `VecEnv.step`.

        Actions of `Dict` or `Tuple` spaces are a list, with one action per row.
        """
        actions = over_leaves(np.array, _in_structure(actions))
        self._steps.append(_Step(self._now, actions, np.array(rewards, np.float64)))
        self._now = over_leaves(np.array, observations)
        self._ages = [age + 1 for age in self._ages]
        ended = np.flatnonzero(over).tolist()
        for row in ended:
            if row not in self._midway:
                self._end(row, infos[row])
            self._midway.discard(row)
            self._ages[row] = 0
        if ended:
            for _ in range(len(self._steps) - max(self._ages)):
                self._steps.popleft()

    def _end(self, row: int, info: dict[str, Any]) -> None:
        fault = info.get("sc2pool.fault")
        if fault is not None and not self._keeps_faulty:
            return

        def played(*batches: Any) -> Any:
            return np.stack([batch[row] for batch in batches])

        def seen(*batches_and_last: Any) -> Any:
            *batches, last = batches_and_last
            return np.stack([*(batch[row] for batch in batches), last])

        steps = list(self._steps)[-self._ages[row] :]
        observations = [step.observations for step in steps]
        self._take(
            RecordedEpisode(
                over_leaves(seen, *observations, info["terminal_observation"]),
                over_leaves(played, *(step.actions for step in steps)),
                np.array([step.rewards[row] for step in steps]),
                terminated=not info["TimeLimit.truncated"],
                fault=None if fault is None else str(fault["kind"]),
            )
        )


def _in_structure(actions: Any) -> Any:
    """Return the actions of all rows as arrays whose first axis is the row."""
    if isinstance(actions, list) and isinstance(actions[0], dict | tuple):
        return over_leaves(lambda *parts: np.stack(parts), *actions)
    return actions


def over_leaves(function: Callable[..., Any], *structures: Any) -> Any:
    """Call a function with the corresponding arrays of equal structures; return its results."""
    first = structures[0]
    if isinstance(first, dict):
        return {key: over_leaves(function, *(one[key] for one in structures)) for key in first}
    if isinstance(first, tuple):
        return tuple(over_leaves(function, *parts) for parts in zip(*structures, strict=True))
    return function(*structures)


def leaves_of(structure: Any) -> Iterator[Any]:
    """Yield all arrays in a structure."""
    if isinstance(structure, dict | tuple):
        for part in structure.values() if isinstance(structure, dict) else structure:
            yield from leaves_of(part)
    else:
        yield structure


SHARD_STEPS = 50_000
SHARD_BYTES = 128_000_000
"""A shard is written when the waiting observations and actions have this many bytes."""
_MAIN = "main_data.hdf5"
_METADATA = "metadata.json"
_METADATA_BYTES = 256_000_000
"""Size limit of the metadata file, in bytes; it lists both bounds of each observed number."""
_EMPTY_BYTES = 10_000
"""An unreadable `main_data.hdf5` with fewer bytes than this limit has no links."""
_SHARD = "shard-"
_LOCK = "recording.lock"

log = logging.getLogger("sc2pool")


class MinariWriter:
    """Writes episodes into a dataset, which is new or resumed.

    Args:
        dataset_id: Minari's name of the dataset, such as `sc2pool/MoveToBeacon/random-v0`.
        observation_space: The space of one row's observations.
        action_space: The space of one row's actions.
        env_spec: gymnasium's spec, from which Minari can make the env. None for no spec.
        about: Further metadata for Minari, such as algorithm_name and description.
        resume: True to continue an existing dataset.

    Attributes:
        episodes: The number of episodes, including the ones that wait for their shard.
        steps: The number of steps of all these episodes.
        folder: The folder of the dataset's data.

    Raises:
        ConfigError: a wrong id, an existing dataset without `resume`, a dataset with other spaces
            or with episodes outside shards, or a dataset that another recorder writes.
        MissingPackageError: Minari or h5py is not installed.
    """

    def __init__(
        self,
        dataset_id: str,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        *,
        env_spec: EnvSpec | None = None,
        about: Mapping[str, str] | None = None,
        resume: bool = False,
    ) -> None:
        check_dataset(dataset_id, resume=resume)
        import minari  # noqa: PLC0415

        self._id = dataset_id
        self._observation_space = observation_space
        self._action_space = action_space
        self._env_spec = env_spec
        self._about = {
            **(about or {}),
            "dataset_id": dataset_id,
            "minari_version": minari.__version__,
        }
        self._waiting: list[RecordedEpisode] = []
        self._waiting_steps = self._waiting_bytes = 0
        self._unlinked: list[Path] = []
        self.episodes = self.steps = 0
        self.folder = folder_of(dataset_id)
        _make_namespace(dataset_id)
        self.folder.parent.mkdir(exist_ok=True)
        lock = self.folder.parent / _LOCK
        held = reserve(lock, "another recorder writes into this dataset")
        self._unlock = weakref.finalize(self, _give_back, held, lock)
        try:
            self._open(resume)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let other recorders write into the dataset. Episodes without a shard are dropped."""
        self._unlock()

    def _open(self, resume: bool) -> None:
        """Begin or resume the dataset."""
        for folder in (self.folder.parent, self.folder):
            remove_unfinished(folder)
        self._check_files()
        if not self.folder.exists() or self._is_empty():
            self._begin()
            return
        if not resume:
            raise ConfigError(f"dataset {self._id}: it is in {self.folder} already; resume it?")
        self._check()
        self._unlinked = self._readable_shards()
        self._link(anew=True)

    def _check_files(self) -> None:
        """Raise `ConfigError` if a file is a pipe or a device: reading it might wait for ever."""
        for path in (self.folder / _MAIN, *self.folder.glob(f"{_SHARD}*.hdf5")):
            if path.exists() and not path.is_file():
                raise ConfigError(f"dataset {self._id}: {path} is not a regular file")

    def _is_empty(self) -> bool:
        """True if the folder has no episodes, for example because the program was killed early."""
        import h5py  # noqa: PLC0415

        main, known = self.folder / _MAIN, self._metadata() or {}
        if not {path.name for path in self.folder.iterdir()} <= {_MAIN, _METADATA}:
            return False
        try:
            with h5py.File(main) as file:
                return not len(file)
        except OSError:  # the file is missing or truncated
            size = main.stat().st_size if main.exists() else 0
            return size < _EMPTY_BYTES and not known.get("total_episodes")

    def _begin(self) -> None:
        """Make the dataset's folder, atomically."""
        made = new_folder(self.folder.parent)
        try:
            data = made / self.folder.name
            self._make(data)
            with _changing(data / _MAIN, copies=False):  # Minari wrote a file that is not HDF5
                pass
            self._describe({**self._about, "dataset_size": 0.0}, data)
            if self.folder.exists():
                shutil.rmtree(self.folder)
            data.rename(self.folder)
        finally:
            shutil.rmtree(made)

    def _metadata(self) -> dict[str, Any] | None:
        """The metadata; None if they are missing or damaged, or lack the spaces."""
        from minari.serialization import deserialize_space  # noqa: PLC0415

        # Without spaces, Minari would make the env that the file names, and run the env's code.
        with suppress(Exception):  # a space's text may be damaged
            found: dict[str, Any] = read_json(self.folder / _METADATA, most=_METADATA_BYTES)
            for name in ("observation_space", "action_space"):
                deserialize_space(found[name])
            return found
        return None

    def _check(self) -> None:
        """Check that the dataset has this writer's spaces. Damaged metadata are written again.

        `ConfigError` if the dataset has other spaces, if another program wrote episodes of it, or
        if it is damaged and has no shard.
        """
        import h5py  # noqa: PLC0415
        from minari.serialization import deserialize_space  # noqa: PLC0415

        known = self._metadata()
        foreign = not list(self.folder.glob(f"*{_SHARD}*.hdf5"))
        if known is None and not foreign:
            log.warning("dataset %s: its metadata are damaged, and are written again", self._id)
            made = new_folder(self.folder)
            self._make(made / "data")
            self._describe(self._about, made / "data")
            (made / "data" / _METADATA).replace(self.folder / _METADATA)
            shutil.rmtree(made)
            return
        if known is None:
            raise ConfigError(f"dataset {self._id}: {self.folder} is damaged and has no shard")
        for name in ("observation_space", "action_space"):
            has, wanted = deserialize_space(known[name]), getattr(self, f"_{name}")
            if has != wanted:
                raise ConfigError(f"dataset {self._id}: its {name} is {has}, not {wanted}")
        with suppress(OSError), h5py.File(self.folder / _MAIN) as main:
            links = [main.get(name, getlink=True) for name in main]
            foreign = not all(isinstance(link, h5py.ExternalLink) for link in links)
        if foreign:
            raise ConfigError(f"dataset {self._id}: it was not recorded by sc2pool")

    def _readable_shards(self) -> list[Path]:
        """Return the readable shards in their order, and rename damaged shards."""
        import h5py  # noqa: PLC0415

        found = []
        for shard in sorted(self.folder.glob(f"{_SHARD}*.hdf5")):
            try:
                with h5py.File(shard) as file:
                    _ = [int(file[name].attrs["total_steps"]) for name in file]
            except Exception as error:  # h5py raises errors of many kinds
                aside = shard.with_name(f"damaged-{shard.name}")
                log.warning("%s is damaged (%s), and becomes %s", shard, str(error), aside.name)
                shard.replace(aside)
            else:
                found.append(shard)
        return found

    def add(self, episode: RecordedEpisode) -> None:
        """Add an episode."""
        self._waiting.append(episode)
        self._waiting_steps += episode.steps
        arrays = leaves_of((episode.observations, episode.actions))
        self._waiting_bytes += sum(array.nbytes for array in arrays)
        self.episodes += 1
        self.steps += episode.steps
        if self._waiting_steps >= SHARD_STEPS or self._waiting_bytes >= SHARD_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the waiting episodes.

        Raises:
            OSError: a file cannot be written. Either the episodes are still in memory, or their
                shard is written but still lacks its links.
        """
        if self._waiting:
            first = self.episodes - len(self._waiting)
            # The pattern also finds damaged shards, so that their numbers are not used again.
            numbers = [int(path.stem[-5:]) for path in self.folder.glob(f"*{_SHARD}*.hdf5")]
            shard = self.folder / f"{_SHARD}{max(numbers, default=-1) + 1:05d}.hdf5"
            self._write(shard, first)
            self._waiting = []
            self._waiting_steps = self._waiting_bytes = 0
            self._unlinked.append(shard)
        if self._unlinked:
            self._link()

    def _make(self, folder: Path) -> Any:
        from minari.dataset.minari_storage import MinariStorage  # noqa: PLC0415

        folder.mkdir(parents=True, exist_ok=True)
        return MinariStorage.new(
            folder,
            observation_space=self._observation_space,
            action_space=self._action_space,
            env_spec=self._env_spec,
            jpeg_encoding=False,
        )

    def _write(self, shard: Path, first: int) -> None:
        """Write the waiting episodes into a new shard. The episodes' ids begin at `first`."""
        import h5py  # noqa: PLC0415
        from minari.data_collector import EpisodeBuffer  # noqa: PLC0415

        buffers = []
        for episode in self._waiting:
            last = np.arange(episode.steps) == episode.steps - 1
            buffers.append(
                EpisodeBuffer(
                    observations=episode.observations,
                    actions=episode.actions,
                    rewards=episode.rewards,
                    terminations=last & episode.terminated,
                    truncations=last & (not episode.terminated),
                )
            )
        folder = new_folder(self.folder)
        try:
            storage = self._make(folder)
            storage._file_path = content = BytesIO()  # h5py accepts a file object as well
            storage.update_episodes(buffers)
            with h5py.File(content, "r+") as file:
                for place, episode in enumerate(self._waiting):
                    attributes = file[f"episode_{place}"].attrs
                    attributes["id"] = first + place
                    if episode.fault is not None:
                        attributes["fault"] = episode.fault
        finally:
            shutil.rmtree(folder)
        with replacing(shard) as unfinished:
            unfinished.write_bytes(content.getbuffer())

    def _link(self, *, anew: bool = False) -> None:
        """Add links to the episodes of the shards in `_unlinked`.

        With `anew`, replace all links and count the episodes; `_unlinked` must have all shards.
        """
        import h5py  # noqa: PLC0415

        steps = 0
        with _changing(self.folder / _MAIN, copies=not anew) as main:
            for shard in self._unlinked:
                _number(shard, len(main))
                with h5py.File(shard) as file:
                    for place in range(len(file)):
                        steps += int(file[f"episode_{place}"].attrs["total_steps"])
                        link = h5py.ExternalLink(shard.name, f"episode_{place}")
                        main[f"episode_{len(main)}"] = link
            linked = len(main)
        if anew:
            self.episodes, self.steps = linked, steps
        size_mb = sum(file.stat().st_size for file in self.folder.iterdir()) / 1e6
        self._describe(
            {
                "total_episodes": self.episodes,
                "total_steps": self.steps,
                "dataset_size": round(size_mb, 1),
            },
            self.folder,
        )
        self._unlinked = []

    def _describe(self, facts: Mapping[str, Any], folder: Path) -> None:
        """Add facts to the metadata in a folder."""
        path = folder / _METADATA
        known = read_json(path, most=_METADATA_BYTES)
        with replacing(path) as unfinished:
            unfinished.write_text(json.dumps({**known, **facts}))


def _give_back(held: int | None, lock: Path) -> None:
    if held is not None:
        unlock_and_remove(held, lock)


def _number(shard: Path, first: int) -> None:
    """Number a shard's episodes from `first` on, so that a lost shard leaves no gap in the ids."""
    import h5py  # noqa: PLC0415

    with h5py.File(shard) as file:
        ids = [int(file[f"episode_{place}"].attrs["id"]) for place in range(len(file))]
    wanted = list(range(first, first + len(ids)))
    if ids != wanted:
        with _changing(shard) as file:
            for place, number in enumerate(wanted):
                file[f"episode_{place}"].attrs["id"] = number


def check_dataset(dataset_id: str, *, resume: bool) -> None:
    """Check that a dataset can be begun or resumed. The check looks only at names of files.

    Raises:
        ConfigError: the id is wrong, or the dataset has episodes and `resume` is False.
        MissingPackageError: Minari or h5py is not installed.
    """
    with needed_for("a dataset"):
        import h5py  # noqa: PLC0415, F401 - Minari's storage needs it
        import minari  # noqa: PLC0415, F401
    folder = folder_of(dataset_id)
    if not resume and {path.name for path in folder.glob("*.hdf5")} - {_MAIN}:
        raise ConfigError(f"dataset {dataset_id}: it is in {folder} already; resume it?")


def folder_of(dataset_id: str) -> Path:
    """The folder of a dataset's data, inside the folder where Minari keeps all datasets.

    Raises:
        ConfigError: the id is wrong.
    """
    from minari.dataset.minari_dataset import DATASET_ID_RE  # noqa: PLC0415
    from minari.storage import get_dataset_path  # noqa: PLC0415

    found = DATASET_ID_RE.fullmatch(dataset_id) if isinstance(dataset_id, str) else None
    if found is None or found["version"] is None:
        raise ConfigError(f"dataset {dataset_id!r}: expected an id such as sc2pool/Task/name-v0")
    return Path(get_dataset_path(dataset_id)) / "data"


def _make_namespace(dataset_id: str) -> None:
    """Make the namespaces of a dataset like Minari, but write each file atomically."""
    from minari.namespace import NAMESPACE_METADATA_FILENAME  # noqa: PLC0415
    from minari.storage import get_dataset_path  # noqa: PLC0415

    *parts, _ = dataset_id.split("/")
    for depth in range(1, len(parts) + 1):
        folder = Path(get_dataset_path("/".join(parts[:depth])))
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / NAMESPACE_METADATA_FILENAME
        if not path.exists() or not path.stat().st_size:
            with replacing(path) as unfinished:
                unfinished.write_text("{}")


@contextmanager
def _changing(path: Path, *, copies: bool = True) -> Iterator[Any]:
    """Yield a copy of an HDF5 file, or an empty file; it replaces `path` after the block."""
    import h5py  # noqa: PLC0415

    content = BytesIO(path.read_bytes() if copies else b"")
    with h5py.File(content, "r+" if copies else "w", track_order=True) as file:
        yield file
    with replacing(path) as unfinished:
        unfinished.write_bytes(content.getbuffer())
