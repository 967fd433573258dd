"""What workers show of their games while someone looks."""

from __future__ import annotations

import pytest

from sc2pool.players.view import KINDS
from sc2pool.pool.report import live_files
from sc2pool.tasks.minigames.move_to_beacon_bot import MoveToBeaconBot
from tests.contract.envs import Counting


def folder_of(env, index: int):
    fleet = env.pool._runtime.fleet
    return fleet.run / str(fleet.seats[index].instance.number)


@pytest.mark.parametrize("task", ["MoveToBeacon", MoveToBeaconBot], ids=["task", "bot"])
def test_live_view_is_written_on_request(vec_task, task, wait_for):
    env = vec_task(task, n=1)
    env.reset()
    folder = folder_of(env, 0)
    live_files.request(folder.parent)
    wait_for(lambda: live_files.read(folder / live_files.VIEW_FILE))
    view, _ = live_files.read(folder / live_files.VIEW_FILE)
    told, _ = live_files.read(folder / live_files.MAP_FILE)
    assert view["map"] == told["key"]
    assert told["name"] == "MoveToBeacon"
    first_loop = view["loop"]
    kinds = [KINDS[row[0]] for row in view["units"]]
    assert sorted(kinds) == ["beacon", "own"]
    env.step([env.action_space.sample()])

    def stepped() -> bool:
        live_files.request(folder.parent)
        return live_files.read(folder / live_files.VIEW_FILE)[0]["loop"] == first_loop + 8

    wait_for(stepped)


def test_an_env_without_a_game_shows_nothing(vec, wait_for):
    env = vec(Counting)
    env.reset()
    folder = folder_of(env, 0)
    live_files.request(folder.parent)
    pool_file = folder.parent / live_files.POOL_FILE
    wait_for(lambda: live_files.read(pool_file))
    (row,) = live_files.read(pool_file)[0]["instances"]
    assert (row["pid"], row["port"], row["episode_return"]) == (None, None, 0.0)
    assert live_files.read(folder / live_files.VIEW_FILE) is None


def test_the_folder_goes_with_the_pool_although_someone_looks(vec_task, wait_for):
    env = vec_task(n=1)
    env.reset()
    folder = folder_of(env, 0)
    live_files.request(folder.parent)
    wait_for(lambda: live_files.read(folder.parent / live_files.POOL_FILE))
    env.close()
    assert not folder.parent.exists()
    with pytest.raises(FileNotFoundError):
        live_files.request(folder.parent)
