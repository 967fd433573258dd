"""Writes episodes as a Minari dataset, in shards.

    data/metadata.json      Minari's
    data/main_data.hdf5     Minari's: `episode_0`, `episode_1`, … as links into the shards
    data/shard-00000.hdf5   some tens of thousands of steps, written by Minari's own storage

Rules: a shard, the links and the metadata appear in one piece each, in this order, so whatever ends
the program costs at most the episodes since the last shard; what is there is taken up again from
the shards. Memory holds one shard. Images are stored as they are, without loss.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from sc2pool.datasets.collector import Episode, leaves_of
from sc2pool.errors import ConfigError
from sc2pool.optional import needed_for
from sc2pool.replacing import new_folder, remove_unfinished, replacing

SHARD_STEPS = 50_000
SHARD_BYTES = 128_000_000
"""Of observations and actions."""
_MAIN = "main_data.hdf5"
_METADATA = "metadata.json"


class MinariWriter:
    """A dataset that grows.

    Args:
        dataset_id: Minari's name of it, `sc2pool/MoveToBeacon/random-v0`.
        observation_space: of one row.
        action_space: of one row.
        env_spec: gymnasium's, with which Minari makes the env again; None for none.
        about: more of Minari's metadata: algorithm_name, description, ….
        resume: go on with a dataset that is there.

    Attributes:
        episodes: in the dataset, those that wait for their shard included.
        steps: of these episodes.
        folder: where the dataset is.

    Raises:
        ConfigError: it is there already, and `resume` is False; or it has other spaces; or no id.
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
        with needed_for("a dataset"):
            import h5py  # noqa: PLC0415, F401 - what Minari's storage needs
            import minari  # noqa: PLC0415
        self._observation_space = observation_space
        self._action_space = action_space
        self._waiting: list[Episode] = []
        self._waiting_steps = self._waiting_bytes = 0
        self.folder = folder = folder_of(dataset_id)
        if not (folder / _METADATA).exists():
            _make_namespace(dataset_id)
            self._make(folder, env_spec)
            facts = {"dataset_id": dataset_id, "minari_version": minari.__version__}
            self._describe({**(about or {}), **facts})
        elif not resume:
            raise ConfigError(f"dataset {dataset_id}: it is in {folder} already; resume it?")
        self._check_spaces(dataset_id)
        remove_unfinished(folder)
        self.episodes = self.steps = 0
        self._link(sorted(folder.glob("shard-*.hdf5")), anew=True)

    def add(self, episode: Episode) -> None:
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
        """Write the episodes that wait.

        Raises:
            OSError: they cannot be written; they still wait.
        """
        if not self._waiting:
            return
        first = self.episodes - len(self._waiting)
        shard = self.folder / f"shard-{len(list(self.folder.glob('shard-*.hdf5'))):05d}.hdf5"
        self._write(shard, first)
        self._waiting = []
        self._waiting_steps = self._waiting_bytes = 0
        self._link([shard])

    def _make(self, folder: Path, env_spec: EnvSpec | None = None) -> Any:
        from minari.dataset.minari_storage import MinariStorage  # noqa: PLC0415

        folder.mkdir(parents=True, exist_ok=True)
        return MinariStorage.new(
            folder,
            observation_space=self._observation_space,
            action_space=self._action_space,
            env_spec=env_spec,
            jpeg_encoding=False,
        )

    def _check_spaces(self, dataset_id: str) -> None:
        from minari.dataset.minari_storage import MinariStorage  # noqa: PLC0415

        found = MinariStorage.read(self.folder)
        for name in ("observation_space", "action_space"):
            has, wanted = getattr(found, name), getattr(self, f"_{name}")
            if has != wanted:
                raise ConfigError(f"dataset {dataset_id}: its {name} is {has}, not {wanted}")

    def _write(self, shard: Path, first: int) -> None:
        """Write the waiting episodes into a new shard, numbered from `first`."""
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
            self._make(folder).update_episodes(buffers)
            with h5py.File(folder / _MAIN, "a") as file:
                for place, episode in enumerate(self._waiting):
                    attributes = file[f"episode_{place}"].attrs
                    attributes["id"] = first + place
                    if episode.fault is not None:
                        attributes["fault"] = episode.fault
            (folder / _MAIN).replace(shard)
        finally:
            shutil.rmtree(folder)

    def _link(self, shards: list[Path], *, anew: bool = False) -> None:
        """Link the episodes of these shards, or of all `anew`, counting them; no episode waits."""
        import h5py  # noqa: PLC0415

        steps = 0
        with (
            _changing(self.folder / _MAIN) as unfinished,
            h5py.File(unfinished, "a", track_order=True) as main,
        ):
            if anew:
                main.clear()
            for shard in shards:
                with h5py.File(shard) as file:
                    for place in range(len(file)):
                        steps += int(file[f"episode_{place}"].attrs["total_steps"])
                        link = h5py.ExternalLink(shard.name, f"episode_{place}")
                        main[f"episode_{len(main)}"] = link
            if anew:
                self.episodes, self.steps = len(main), steps
        size_mb = sum(file.stat().st_size for file in self.folder.iterdir()) / 1e6
        self._describe(
            {
                "total_episodes": self.episodes,
                "total_steps": self.steps,
                "dataset_size": round(size_mb, 1),
            }
        )

    def _describe(self, facts: Mapping[str, Any]) -> None:
        """Add to the metadata."""
        path = self.folder / _METADATA
        known = json.loads(path.read_text())
        with _changing(path) as unfinished:
            unfinished.write_text(json.dumps({**known, **facts}))


def folder_of(dataset_id: str) -> Path:
    """The folder of a dataset's data, in the folder that Minari has for all.

    Raises:
        ConfigError: it is no id.
    """
    from minari.dataset.minari_dataset import DATASET_ID_RE  # noqa: PLC0415
    from minari.storage import get_dataset_path  # noqa: PLC0415

    found = DATASET_ID_RE.fullmatch(dataset_id) if isinstance(dataset_id, str) else None
    if found is None or found["version"] is None:
        raise ConfigError(f"dataset {dataset_id!r}: expected an id such as sc2pool/Task/name-v0")
    return Path(get_dataset_path(dataset_id)) / "data"


def _make_namespace(dataset_id: str) -> None:
    from minari.namespace import create_namespace, list_local_namespaces  # noqa: PLC0415

    namespace = dataset_id.rpartition("/")[0]
    if namespace and namespace not in list_local_namespaces():
        create_namespace(namespace)


@contextmanager
def _changing(path: Path) -> Iterator[Path]:
    """A copy of the file to change, which replaces it when the block is done."""
    with replacing(path) as unfinished:
        shutil.copyfile(path, unfinished)
        yield unfinished
