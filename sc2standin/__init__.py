"""The stand-in: an embedded game server for machines without StarCraft II.

The stand-in is a separate program (`python -m sc2standin`). Clients use it only through its command
line and its port, as they use the real game. README.md beside this file says what it simulates.

    process/      the socket (`server`), the check and the answers of requests (`session`), the
                  state between two requests (`state`)
    requests/     one handler per request
    meeting       connects the processes of two clients in one game
    match         the game of two clients, in the process of one of them
    recording     records the requests of an episode; writes, reads and plays replay files
    layers/       the screen: feature layers, rendered images and panels
    view/         the client's view of the world, as messages
    simulation/   one episode (`game`), its units (`world`), one file per mechanism
    map_reader/   the format of map files: units, places, ground, rules, economy
    data/         unit types, abilities, spells, research, the data tables
    maps/         the map files
    tempers       reported behaviours of the real game that are hard on clients

Imports go one way only: `session` → `requests` → `match` → `state` → `meeting`, `tempers`, `view`,
`recording` → `simulation` → `map_reader` → `data`.
"""
