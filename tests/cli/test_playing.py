"""`sc2pool play` and `sc2pool record`: a trained model plays, and its episodes are kept."""

from __future__ import annotations

import json
import os
import re
import signal
from contextlib import closing
from functools import partial

import minari
import numpy as np
import psutil
import pytest
from gymnasium import Env, spaces
from PIL import Image
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from sc2pool import DummySC2VecEnv, SubprocSC2VecEnv
from sc2pool.cli.chosen_player import ChosenPlayer, rows_of
from sc2pool.cli.play import end_of, play_episodes
from sc2pool.datasets import EpisodeCollector
from sc2pool.tasks.registry import resolve_task
from tests.cli.conftest import COMMAND
from tests.support.installations import changed
from tests.support.programs import assert_gone, start


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run's folder, which has a model and names the task that the model was trained for."""

    class Spaces(Env):
        observation_space = resolve_task("MarineDuel").observation_space
        action_space = resolve_task("MarineDuel").action_space

    folder = tmp_path_factory.mktemp("models") / "run"
    folder.mkdir()
    PPO("MlpPolicy", DummyVecEnv([Spaces]), n_steps=8, batch_size=8, seed=1).save(
        folder / "model.zip"
    )
    (folder / "config.json").write_text(json.dumps({"options": {"task": "MarineDuel"}}))
    return folder


@pytest.fixture
def play(in_process, standin_dir):
    return partial(in_process, "play", f"--game={standin_dir}")


def test_two_models(play, trained, tmp_path):
    # None of these folders exists, so the command must make them.
    replay, gif = tmp_path / "replays" / "a.SC2Replay", tmp_path / "pictures" / "a.gif"
    video = tmp_path / "videos" / "a.mp4"
    code, said, complaints = play(
        trained,
        f"--against={trained}",
        "--episodes=2",
        "--seed=1",
        f"--replay={replay}",
        f"--gif={gif}",
        f"--video={video}",
    )
    assert code == 0
    assert f" of 2 matches against {trained}, lost " in said
    assert "http://127.0.0.1:" not in said + complaints
    assert said.splitlines()[-3:] == [f"  {video}", f"  {gif}", f"  {replay}"]
    assert replay.read_bytes()[:4] == b"MPQ\x1a"
    assert video.read_bytes()[4:8] == b"ftyp"
    with Image.open(gif) as image:
        assert image.size == (640, 480)
        assert image.n_frames == int(
            re.search(r"\n +1 .* (\d+)  (win|loss|tie|undecided)", said)[1]
        )
        first = np.asarray(image.convert("RGB")).copy()
        image.seek(image.n_frames - 1)
        assert (np.asarray(image.convert("RGB")) != first).any()


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (("--against", "scripted"), "scripted"),
        (("--opponent", "zerg", "VeryEasy"), "the computer (zerg VeryEasy)"),
    ],
    ids=["scripted", "computer"],
)
def test_the_other_side(play, trained, other, name):
    code, said, _ = play(trained, "--episodes=1", "--seed=1", *other)
    assert code == 0
    assert said.splitlines()[-1].startswith(f"won 0 of 1 matches against {name}, lost ")


def test_watching(play):
    """`--watch` plays a battle at a speed for viewers; the battle ends within seconds."""
    code, said, complaints = play("3m", "--episodes=1", "--watch")
    assert code == 0
    assert said.splitlines()[-1].startswith("mean return")
    assert "http://127.0.0.1:" in said + complaints


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["scriptd"], "; did you mean scripted?"),
        (["kite:Kite"], "; for a task say who plays it: random --task kite:Kite"),
        (["8M"], "; for a task say who plays it: random --task 8M"),
        (["none.zip"], "none.zip: no such run's folder, no such model, and no pretrained policy"),
        (["{empty}"], "no model.zip in it, so there is nothing to play"),
        (["{run}", "--against=none.zip"], "none.zip: no such run's folder, no such model"),
        (["{run}", "--task=MoveToBeacon"], "observes "),
        (["3m", "--against=scripted"], "--against scripted: 3m has one player"),
        ([__file__], "nothing beside it says which task it plays; give --task"),
        ([__file__, "--task=MarineDuel"], "not a model that SB3 has saved"),
        (["{run}", "--opponent", "zergs", "easy"], "'zergs' is none of "),
        (
            ["MoveToBeacon", "--opponent", "zerg", "easy"],
            "--opponent zerg easy: MoveToBeacon has no opponent",
        ),
        (["{run}", "--gif={empty}"], "is a folder, expected a file"),
        (["{run}", "--gif=a.png"], "--gif a.png: the name must end with .gif"),
        (["{run}", "--video=a.gif"], "--video a.gif: the name must end with .mp4 or "),
        (["3m", "--gif=/proc/a.gif"], "--gif /proc: cannot write into /proc"),
    ],
)
def test_bad_input(play, trained, tmp_path, arguments, message):
    code, said, complaints = play(*(one.format(run=trained, empty=tmp_path) for one in arguments))
    assert (code, said) == (2, "")
    assert message in complaints
    assert complaints.count("\n") == 1


class Fires:
    """A policy that takes the first possible action, and counts how often it is called."""

    def __init__(self) -> None:
        self.calls = 0

    def predict(
        self, observation, state=None, episode_start=None, deterministic=False, *, action_masks
    ):
        self.calls += 1
        return action_masks.argmax(axis=1), state


def test_a_model_of_another_algorithm_plays_as_it_does_in_a_program(play, standin_dir, tmp_path):
    """A model of MaskablePPO needs masks, and only the model's file names the algorithm."""
    with closing(SubprocSC2VecEnv("DefeatRoaches", n=1, game=standin_dir, seed=5)) as env:
        model = MaskablePPO("MlpPolicy", env, n_steps=8, batch_size=8, seed=2, device="cpu")
        env.seed(5)
        seen, over, episode_return, steps = env.reset(), [False], 0.0, 0
        while not over[0]:
            masks = np.stack(env.env_method("action_masks"))
            actions, _ = model.predict(seen, deterministic=True, action_masks=masks)
            seen, rewards, over, _ = env.step(actions)
            episode_return, steps = episode_return + rewards[0], steps + 1
    model.save(tmp_path / "model.zip")
    code, said, _ = play(tmp_path / "model.zip", "--task=DefeatRoaches", "--episodes=1", "--seed=5")
    assert code == 0
    assert f"\n      1 {episode_return:10.2f} {steps:7d}  " in said


def test_files_that_cannot_be_made_after_the_game(play, tmp_path):
    """An unfinished file has a longer name, which is too long here for the file system."""
    files = {"replay": ".SC2Replay", "gif": ".gif", "video": ".mp4"}
    named = {
        kind: tmp_path / f"{'a' * (250 - len(suffix))}{suffix}" for kind, suffix in files.items()
    }
    code, said, _ = play("3m", "--episodes=1", *(f"--{kind}={one}" for kind, one in named.items()))
    assert code == 2
    for one in named.values():
        assert said.count(f"cannot write {one}") == 1


def test_sigterm_leaves_no_file(standin_dir, tmp_path):
    folder = tmp_path / "temporary"
    folder.mkdir()
    command = (*COMMAND, "play", "3m", "--video", folder / "a.mp4", "--game", standin_dir)
    # Importing torch makes a folder, which must lie outside `folder`.
    env = os.environ | {"TMPDIR": str(folder), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "torch")}
    process = start(*command, "--episodes", "1000", stderr=None, env=env)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("episode"):
            break
    process.terminate()
    assert process.wait(100) == 143
    assert [path.name for path in folder.iterdir()] in ([], ["a.mp4"])


@pytest.mark.usefixtures("with_hangups")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_a_reader_of_replays(standin_dir, wait_for, tmp_path, number):
    """The game that reads the replay must be ended, and its folder deleted."""
    replay, temp = tmp_path / "a.SC2Replay", tmp_path / "temp"
    replay.write_bytes(b"MPQ")
    temp.mkdir()
    silent = changed(standin_dir, tmp_path / "game", lambda _: "#!/bin/sh\nexec sleep 100\n")
    env = os.environ | {"TMPDIR": str(temp)}
    process = start(*COMMAND, "replay", replay, "--game", silent, stdout=None, stderr=None, env=env)
    wait_for(lambda: list(temp.glob("sc2pool-game-*/*")))
    game = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    assert process.wait(100) == 128 + number
    assert_gone(game)
    assert not list(temp.iterdir())


def test_teams_on_several_games(standin_dir):
    """Each game plays its share of the episodes, and a team's episode counts as one."""
    env = SubprocSC2VecEnv("3m", n=2, game=standin_dir, max_loops=40, seed=1)
    policy = Fires()
    ended = list(play_episodes(env, policy, 3, deterministic=True, rows=env.pool.rows))
    env.close()
    assert [(one.steps, one.end) for one in ended] == [(5, "undecided")] * 3
    assert policy.calls == 10


def test_an_episode_cut_short_is_played_again(standin_dir):
    env = SubprocSC2VecEnv("3m", n=1, game=standin_dir, max_loops=40)

    class KillsTheFirstGame:
        def begin(self, _: object) -> None:
            psutil.Process(env.stats().instances[0].pid).kill()

        def step(self, *_: object) -> None:
            pass

    watcher = KillsTheFirstGame()
    ended = list(play_episodes(env, Fires(), 1, deterministic=True, rows=3, watchers=[watcher]))
    env.close()
    assert [(one.end, one.whole) for one in ended] == [
        ("fault: game-exited", False),
        ("undecided", True),
    ]


def test_how_an_episode_ended():
    assert end_of({"sc2pool.result": "tie", "TimeLimit.truncated": True}) == ("tie", True)
    assert end_of({"TimeLimit.truncated": False}) == ("ended", True)


BOX = spaces.Box(0.0, 1.0, (2,), np.float32)
KINDS = {
    "box": BOX,
    "discrete": spaces.Discrete(3, start=5),
    "multi-discrete": spaces.MultiDiscrete([[2, 3], [4, 5]], start=[[1, 2], [3, 4]]),
    "multi-binary": spaces.MultiBinary([2, 2]),
    "dict": spaces.Dict(
        z=spaces.Discrete(2), a=spaces.Tuple([BOX, spaces.Dict(b=spaces.MultiBinary(3))])
    ),
    "tuple": spaces.Tuple([spaces.Discrete(4), BOX]),
    "text": spaces.Text(5),
}


def task_with(space: spaces.Space, *, masked: bool) -> type:
    """A task that observes samples of its action space, and keeps its actions."""

    class Sampled(resolve_task("MoveToBeacon")):
        observation_space = action_space = space
        max_loops = 24
        step_mul = 8

        def observe(self):
            return space.sample()

        def act(self, action):
            played.append(action)

        @staticmethod
        def scripted(observation):
            assert observation in space
            return observation

    played = Sampled.played = []
    if masked:
        # The first mask allows only the last alternative of each choice.
        # Later observations have no mask, so they allow all actions.
        counts = {spaces.Discrete: [3], spaces.MultiDiscrete: [2, 3, 4, 5]}
        counts = counts.get(type(space), [2] * 4)
        mask = np.concatenate([np.arange(count) == count - 1 for count in counts])
        Sampled.action_masks = lambda self: None if self.last_action is not None else mask
    return Sampled


@pytest.mark.parametrize("player", ["random", "scripted"])
@pytest.mark.parametrize("kind", KINDS)
def test_players_of_every_kind_of_space(kind, player, standin_dir):
    """The players' actions are recorded in the structure of the space."""
    space, recorded = KINDS[kind], []
    task = task_with(space, masked=False)
    watchers = [EpisodeCollector(recorded.append)] if kind != "text" else []
    with closing(DummySC2VecEnv(task=task, n=2, game=standin_dir, seed=1)) as env:
        policy = ChosenPlayer(player, task, str(standin_dir)).policy(1)
        ended = list(play_episodes(env, policy, 2, deterministic=True, watchers=watchers))
    assert [one.steps for one in ended] == [3, 3]
    assert len(task.played) == 6
    for episode in recorded:
        for structure, length in ((episode.observations, 4), (episode.actions, 3)):
            rows = rows_of(space, structure)
            assert len(rows) == length
            assert all(row in space for row in rows)


@pytest.mark.parametrize("kind", ["discrete", "multi-discrete", "multi-binary"])
def test_random_actions_keep_to_masks(kind, standin_dir):
    space = KINDS[kind]
    task = task_with(space, masked=True)
    with closing(DummySC2VecEnv(task=task, n=1, game=standin_dir, seed=1)) as env:
        policy = ChosenPlayer("random", task, str(standin_dir)).policy(1)
        list(play_episodes(env, policy, 3, deterministic=True))
    last = {"discrete": 7, "multi-discrete": [[2, 4], [6, 8]], "multi-binary": [[1, 1], [1, 1]]}
    first_actions = [np.asarray(action).tolist() for action in task.played[::3]]
    assert first_actions == [last[kind]] * 3
    assert all(action in space for action in task.played)


@pytest.fixture
def record(in_process, standin_dir, tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return partial(in_process, "record", f"--game={standin_dir}")


def test_a_scripted_player_then_more_of_it(record, standin_dir, tmp_path):
    code, said, _ = record("scripted", "--steps=300", "--n=2", "--seed=1")
    assert code == 0
    assert '\nto read it: minari.load_dataset("sc2pool/MoveToBeacon/scripted-v0")' in said
    dataset = minari.load_dataset("sc2pool/MoveToBeacon/scripted-v0")
    assert (dataset.total_episodes, dataset.total_steps) == (2, 480)
    assert all(episode.rewards.sum() > 15 for episode in dataset.iterate_episodes())
    assert all(episode.truncations[-1] for episode in dataset.iterate_episodes())
    first = dataset[0]
    assert first.observations.shape == (241, 5)
    assert all(seen in dataset.observation_space for seen in first.observations)
    assert all(action in dataset.action_space for action in first.actions)

    # The error must come before a game is started, because this game cannot start.
    broken = changed(standin_dir, tmp_path / "broken", lambda _: "#!/bin/false\n")
    code, _, complaint = record("scripted", "--steps=300", f"--game={broken}")
    assert code == 2
    assert "already; resume it?" in complaint
    assert "expected an id such as" in record("scripted", "--dataset=x", f"--game={broken}")[2]
    assert record("scripted", "--steps=500", "--n=1", "--resume", "--seed=1")[0] == 0
    dataset = minari.load_dataset("sc2pool/MoveToBeacon/scripted-v0")
    assert dataset.total_episodes == 3
    begun = {one.observations[:9].tobytes() for one in dataset.iterate_episodes()}
    assert len(begun) == 3, "the seed of the first part begins the same episodes again"
    assert record("scripted", "--steps=500", "--n=1", "--resume")[0] == 0
    assert minari.load_dataset("sc2pool/MoveToBeacon/scripted-v0").total_episodes == 3, "enough"


def test_random_agents_of_a_team(record):
    """Each agent's episodes are recorded; the task checks that the masks allow the actions."""
    code, _, _ = record("random", "--task=3m", "--steps=60", "--n=1", "--dataset=three/random-v1")
    assert code == 0
    dataset = minari.load_dataset("three/random-v1")
    assert dataset.total_episodes % 3 == 0
    assert dataset.spec.env_spec is None


def test_ctrl_c_saves(standin_dir, tmp_path):
    command = (*COMMAND, "record", "random", "--n=1", "--game", standin_dir)
    env = os.environ | {"MINARI_DATASETS_PATH": str(tmp_path)}
    process = start(*command, stderr=None, env=env)
    assert process.stdout is not None
    for line in process.stdout:
        if "/ 100,000 steps" in line:
            break
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=100)[0]
    assert process.returncode == 130
    (data,) = tmp_path.rglob("data")
    dataset = minari.MinariDataset(data)
    assert f"{dataset.total_steps:,} steps in {dataset.total_episodes} episodes" in said
    assert dataset.total_episodes > 0
