"""save_map: stores a map in the folder for temporary files, where create_game finds it.

In a game of two clients both processes get the map in this way. The request is allowed in any
status.

Rules it keeps: a path leads only to files below that folder. A file is replaced as a whole.
"""

from __future__ import annotations

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.process.state import RequestRefused, State
from sc2standin.replacing import replace_file
from sc2standin.requests.text import text

MAX_PATH_LENGTH = 260
"""The limit that the API's description states."""


def save_map(state: State, request: sc_pb.RequestSaveMap, response: sc_pb.Response) -> None:
    """Write the map."""
    response.save_map.SetInParent()
    if not request.map_data:
        response.save_map.error = sc_pb.ResponseSaveMap.InvalidMapData
        return
    folder, name = state.temp_dir, text(request.map_path)
    if folder is None:
        raise RequestRefused("There is no folder for temporary files (-tempDir)")
    try:
        path = (folder / name).resolve()  # symbolic links and `..` are followed
        if folder.resolve() not in path.parents or len(name) > MAX_PATH_LENGTH:
            raise RequestRefused(f"{name} does not name a file in the folder for temporary files")
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, request.map_data)
    except (OSError, ValueError) as error:
        raise RequestRefused(f"{name} cannot be written: {error}") from None
