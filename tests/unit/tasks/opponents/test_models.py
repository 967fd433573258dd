"""Tests saved models: their spaces are read without torch, and a policy plays as its model."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import pickle
import re
import sys
import tracemalloc
import zipfile
from io import BytesIO
from types import SimpleNamespace
from unittest.mock import create_autospec

import numpy as np
import pytest
from gymnasium import spaces

from sc2pool.errors import ConfigError, MissingPackageError
from sc2pool.tasks.opponents.models import (
    ModelPair,
    SavedModel,
    batch_of,
    draws_of,
    model_pair,
    save_model,
)
from sc2pool.tasks.opponents.policies import PredictPair
from sc2pool.tasks.player import Episode
from tests.unit.conftest import printed_by, rewrite_archive
from tests.unit.tasks.opponents.conftest import FOUR, SEEN, SHOWN, answer


def test_the_trainer_reads_the_spaces_without_torch(saved):
    program = (
        "import sys; from pathlib import Path;"
        "from sc2pool.tasks.opponents.models import SavedModel;"
        f"print(*SavedModel('m', Path({str(saved())!r})).read_spaces());"
        "assert not {'torch', 'stable_baselines3'} & set(sys.modules)"
    )
    assert printed_by(program) == "Box(-1.0, 1.0, (3,), float32) Discrete(4)\n"


@pytest.mark.parametrize("masked", [False, True])
def test_the_policy_predicts_as_the_model(make_model, tmp_path, masked):
    model = make_model(masked=masked, seed=3)
    save_model(model, tmp_path / "model.zip")
    policy = SavedModel("model", tmp_path / "model.zip").load()
    for observation in SEEN.sample(), SEEN.sample():
        wanted, _ = model.predict(observation, deterministic=True)
        assert policy.predict(observation, deterministic=True)[0] == wanted


def test_a_file_is_loaded_once_until_it_changes(saved):
    path = saved()
    model = SavedModel("model", path)
    first = model.load()
    assert SavedModel("another name", path).load() is first
    os.utime(path, ns=(0, 0))
    assert model.load() is not first


def test_the_content_of_a_file_will_do(saved):
    content = saved().read_bytes()
    assert SavedModel("model", content).load() is SavedModel("model", content).load()


def drawn(policy, seed: int, others: int = 0) -> list[int]:
    """Twenty actions; before each action, other code draws `others` random numbers."""
    import torch

    pair = ModelPair(policy, FOUR, seed)
    actions = []
    for _ in range(20):
        torch.rand(others)
        actions.append(int(answer(pair)))
    return actions


def test_a_policy_draws_from_numbers_of_its_own(saved):
    policy = SavedModel("model", saved()).load()
    assert drawn(policy, 1) == drawn(policy, 1, others=3)
    assert len(set(drawn(policy, 1))) > 1
    assert drawn(policy, 1) != drawn(policy, 2)


def test_a_seeded_episode_does_not_depend_on_its_number():
    def draws(episode):
        return draws_of(episode).integers(1000, size=4).tolist()

    assert draws(Episode(3, seed=7)) == draws(Episode(9, seed=7))
    assert draws(Episode(3)) != draws(Episode(4))
    assert draws(Episode(7)) != draws(Episode(0, seed=7))


@pytest.mark.parametrize("content", [b"", b"no archive", None, "empty", "data"])
def test_file_that_is_no_model_is_a_config_error(content, tmp_path):
    path = tmp_path / "model.zip"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        with zipfile.ZipFile(path, "w") as archive:
            if content == "data":
                archive.writestr("data", '{"observation_space": {":serialized:": "!"}}')
    expected = ": no such file" if content is None else " is not a model that SB3 has saved"
    model = SavedModel("model", path)
    with pytest.raises(ConfigError, match=f"model.zip{expected}"):
        model.read_spaces()
    with pytest.raises(ConfigError, match=r"model\.zip"):
        model.load()


def test_spaces_are_checked_by_name(saved):
    model = SavedModel("model", saved())
    model.check_spaces(SEEN, FOUR)
    with pytest.raises(ConfigError, match=r"model.zip acts in Discrete\(4\), .* task's Discrete"):
        model.check_spaces(SEEN, spaces.Discrete(5))
    with pytest.raises(ConfigError, match=r"observes Box\(-1.0, .* the task's MultiBinary"):
        model.check_spaces(spaces.MultiBinary(3), FOUR)


def test_an_image_may_have_its_channels_first(saved):
    image = spaces.Box(0, 255, (40, 36, 3), np.uint8)
    transposed = spaces.Box(0, 255, (3, 40, 36), np.uint8)
    SavedModel("model", saved(observed=transposed)).check_spaces(image, FOUR)
    both = spaces.Dict(image=image, vector=SEEN)
    model = with_space(saved(), spaces.Dict(image=transposed, vector=SEEN))
    model.check_spaces(both, FOUR)
    with pytest.raises(ConfigError, match="observes Dict"):
        model.check_spaces(spaces.Dict(image=image), FOUR)
    with pytest.raises(ConfigError, match="observes Dict"):
        model.check_spaces(image, FOUR)


@pytest.mark.parametrize("masked", [False, True])
def test_a_teams_policy_predicts_for_all_agents_at_once(make_model, masked):
    """Without random actions, the team gets the actions that a call for each agent would give."""
    policy = make_model(masked=masked, seed=4).policy
    predict = create_autospec(policy.predict, side_effect=policy.predict)
    team = ModelPair(SimpleNamespace(predict=predict), FOUR, seed=1)
    team._deterministic = True
    rng = np.random.default_rng(5)
    for _ in range(20):
        rows = [
            SHOWN._replace(
                observation=rng.uniform(-1, 1, 3).astype(np.float32),
                action_masks=rng.permutation([True, True, False, False]) if masked else None,
            )
            for _ in range(5)
        ]
        team.put_rows(rows)
        alone = [answer(PredictPair(policy, FOUR, deterministic=True), row) for row in rows]
        assert asyncio.run(team.get_actions()) == alone
    assert predict.call_count == 20


def test_a_batch_of_dicts():
    batch = batch_of([{"own": np.zeros(2), "all": np.ones(3)}, {"own": np.ones(2), "all": [1] * 3}])
    assert {name: array.shape for name, array in batch.items()} == {"own": (2, 2), "all": (2, 3)}


def test_a_seeded_team_draws_the_same_actions(make_model):
    policy = make_model(seed=6).policy

    def drawn(seed: int) -> list[int]:
        pair = model_pair(policy, FOUR, Episode(0, seed=seed))
        pair.put_rows([SHOWN] * 4)
        return [int(a) for _ in range(8) for a in asyncio.run(pair.get_actions())]

    assert drawn(1) == drawn(1) != drawn(2)


@pytest.mark.parametrize("part", ["data", "policy.pth"])
@pytest.mark.parametrize("damage", ["bits", "cut", "deep", "gone"])
def test_a_damaged_file_is_a_config_error(saved, part, damage):
    path = saved()
    with zipfile.ZipFile(path) as archive:
        at = archive.getinfo(part).header_offset
    content = path.read_bytes()
    if damage == "bits":
        path.write_bytes(content[: at + 60] + bytes(30) + content[at + 90 :])
    elif damage == "cut":
        path.write_bytes(content[: at + 60])
    else:
        rewrite_archive(path, {part: b"[" * 200_000 if damage == "deep" else None})
    with pytest.raises(ConfigError, match="not a model that SB3 has saved"):
        SavedModel("model", path).load()


def test_a_model_of_a_missing_package(saved, monkeypatch):
    model = SavedModel("model", saved(masked=True))
    monkeypatch.setitem(sys.modules, "sb3_contrib.common.maskable.policies", None)
    with pytest.raises(MissingPackageError, match="the model model needs sb3-contrib"):
        model.load()


def with_pickle(path, pickled: bytes) -> SavedModel:
    """The model in this file, with another pickle in place of its observation space."""
    with zipfile.ZipFile(path) as archive:
        data = json.loads(archive.read("data"))
    data["observation_space"] = {":serialized:": base64.b64encode(pickled).decode()}
    rewrite_archive(path, {"data": json.dumps(data)})
    return SavedModel("model", path)


def with_space(path, space: object) -> SavedModel:
    """The model in this file, with another observation space."""
    return with_pickle(path, pickle.dumps(space))


class RunsCode:
    """Runs code when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_to_read_spaces_runs_no_code_of_the_file(saved, tmp_path):
    harm = tmp_path / "harm"
    refused = rf"{os.mkdir.__module__}\.mkdir is no part of a space of gymnasium's"
    with pytest.raises(ConfigError, match=refused):
        with_space(saved(), RunsCode(harm)).read_spaces()
    assert not harm.exists()
    with pytest.raises(ConfigError, match="expected a space, got NoneType"):
        with_space(saved(), None).read_spaces()


class Calls:
    """Is pickled as a call of a function, and as a state that is set on the call's result."""

    def __init__(self, function, *arguments, state=None):
        self.call = (function, arguments, *(() if state is None else (state,)))

    def __reduce__(self):
        return self.call


def forged() -> dict[str, Calls]:
    """Arrays and numbers that would be pointers to Python objects, at addresses from the file."""
    address = bytearray(b"AAAAAAAA")
    core = np._core if hasattr(np, "_core") else np.core
    made = Calls(core.multiarray._reconstruct, np.ndarray, (0,), b"b")
    made.call += ((1, (1,), np.dtype("O"), False, [address]),)
    # Without flags, numpy's dtype for objects reads the bytes of an array as pointers.
    unflagged = Calls(np.dtype, "O8", False, True, state=(3, "|", None, None, None, -1, -1, 0))
    content = (1, (1,), unflagged, False, bytes(address))
    return {
        "ndarray": Calls(np.ndarray, (1,), np.dtype("O"), address),
        "frombuffer": Calls(core.numeric._frombuffer, address, np.dtype("O"), (1,), "C"),
        "state": made,
        "flags": Calls(core.multiarray._reconstruct, np.ndarray, (0,), b"b", state=content),
        "flags-buffer": Calls(core.numeric._frombuffer, address, unflagged, (1,), "C"),
        "flags-scalar": Calls(core.multiarray.scalar, unflagged, bytes(address)),
        "strides": Calls(np.ndarray, (1 << 40,), np.dtype("f4"), address, 0, (0,)),
        "scalar": Calls(core.multiarray.scalar, np.dtype("O"), bytes(address)),
        "longer": Calls(core.numeric._frombuffer, address, np.dtype("f4"), (1 << 30, 1 << 34), "C"),
    }


READ = """
import json, sys
from pathlib import Path
from sc2pool.errors import ConfigError
from sc2pool.tasks.opponents.models import SavedModel

told = {}
for path in map(Path, %r):
    print(path.stem, file=sys.stderr)
    try:
        told[path.stem] = str(SavedModel("m", path).read_spaces())
    except ConfigError as error:
        told[path.stem] = str(error)
print(json.dumps(told))
"""


def told_of(saved, pickles: dict[str, bytes]) -> dict[str, str]:
    """For each model: the error, or the spaces, that a child process gets from the model's file.

    The observation space of each model is one of the pickles. A child reads the models, because a
    failure would end the reading process with SIGSEGV.
    """
    models = [with_pickle(saved(name), pickled) for name, pickled in pickles.items()]
    return json.loads(printed_by(READ % [str(model.source) for model in models]))


def test_a_file_chooses_no_memory_to_read(saved):
    box = spaces.Box(-1, 1, (5,), np.float32)
    pickles = {}
    for kind, array in forged().items():
        box.low = box.high = array
        pickles[kind] = pickle.dumps(box)
    refused = re.compile("expected (an array|the type of a number|[0-9]+ numbers), got")
    for kind, told in told_of(saved, pickles).items():
        assert refused.search(told), (kind, told)


TWOS = b")\x94" + b"".join(b"h" + bytes([one]) + b"\x86\x94" for one in range(99))
"""Opcodes of a pickle: nested tuples, each of which contains the previous tuple twice."""
LEVELS = b")" + 150_000 * b"\x85"
"""Opcodes of a pickle: 150,000 tuples, each inside the next one."""


HASHED = {
    "member-of-set": (b"\x8f(", b"\x90"),
    "member-of-frozenset": (b"(", b"\x91"),
    "member-of-dict": (b"}(", b"\x90"),
    "key-of-dict": (b"}(", b"Nu"),
    "item-of-set": (b"\x8f(N", b"u"),
    "one-key-of-dict": (b"}", b"Ns"),
    "name-of-function": (b"\x8c\x10gymnasium.spaces", b"\x93)R"),
}
"""For each place: the opcodes before and after an object that Python would hash."""


def test_no_hash_of_what_a_file_nests_is_computed(saved):
    """An object in a pickle is not hashed, because Python would need years, or end with SIGSEGV."""
    nested = {"twos": TWOS, "levels": LEVELS}
    pickles = {
        f"{place}-{name}": b"\x80\x04" + before + part + after + b"."
        for place, (before, after) in HASHED.items()
        for name, part in nested.items()
    }
    for name, told in told_of(saved, pickles).items():
        assert "UnpicklingError: expected a " in told, name


def test_a_space_with_too_many_parts(saved):
    """A space of 2^30 parts, from a pickle of a few bytes, must be refused."""
    inner = spaces.Discrete(2)
    for _ in range(30):
        inner = spaces.Tuple([inner, inner])
    with pytest.raises(ConfigError, match="more than 2,000 parts"):
        with_space(saved(), inner).read_spaces()


def test_a_part_that_becomes_much_larger_than_the_file(saved):
    """A part that unpacks to much more is refused: a file of 3 MB could take 6 GB of memory."""
    large = bytes(50_000_000)
    weights = BytesIO()
    with zipfile.ZipFile(weights, "w", zipfile.ZIP_DEFLATED) as inner:
        inner.writestr("archive/data/0", large)
    for part, content in {"data": large, "policy.pth": weights.getvalue()}.items():
        path = saved()
        rewrite_archive(path, {part: content}, zipfile.ZIP_DEFLATED)
        once = (
            rf"^model {re.escape(str(path))} is not a model that SB3 has saved: '.*' is much larger"
        )
        with pytest.raises(ConfigError, match=once):
            SavedModel("model", path).load()


def test_a_part_that_says_that_it_is_small(saved):
    path = saved()
    rewrite_archive(path, {"data": bytes(50_000_000)}, zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("data").file_size.to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(size, (10).to_bytes(4, "little")))
    tracemalloc.start()
    with pytest.raises(ConfigError):
        SavedModel("model", path).read_spaces()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000


def test_every_space_of_gymnasium_is_read(saved):
    every = spaces.Dict(
        box=spaces.Box(np.array([-1.0, 0.0], np.float32), 1.0),
        discrete=spaces.Discrete(3, start=2),
        others=spaces.Tuple([spaces.MultiDiscrete([2, 3]), spaces.MultiBinary([2, 3])]),
        text=spaces.Text(5),
        many=spaces.Sequence(spaces.Discrete(2)),
        graph=spaces.Graph(spaces.Discrete(2), None),
        edges=spaces.Graph(spaces.Discrete(2), spaces.Discrete(3)),
        one_of=spaces.OneOf([spaces.Discrete(2), spaces.Box(0, 1)]),
    )
    every.seed(3)
    every.sample()
    assert with_space(saved(), every).read_spaces()[0] == every
