"""The stand-in: an embedded game server for machines without StarCraft II.

The stand-in is a separate program (`python -m sc2standin`). Clients use it only through its command
line and its port, as they use the real game. README.md beside this file says what it simulates.

* Folder process/: the socket, the check of requests, the replies, and the game process's state.
* Folder requests/: one handler per request.
* File meeting: connects the processes of two clients in one game.
* File match: one process's part of a game of two clients.
* File recording: records the requests of an episode; writes, reads and plays replay files.
* Folder layers/: the screen, with feature layers, rendered images and panels.
* Folder view/: the client's view of the world, as messages.
* Folder simulation/: one episode (`game`), its units (`world`), and one file per mechanism.
* Folder map_reader/: the format of map files, with units, places, ground, rules and economy.
* Folder data/: unit types, abilities, spells, research, and the data tables.
* Folder maps/: the map files.
* File tempers: reported behaviours of the real game that are hard on clients.

A module imports only modules that follow it in this order: session, requests, match, state, then
meeting, tempers, view and recording, then simulation, map_reader and data.
"""
