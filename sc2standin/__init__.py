"""The stand-in: an embedded game server for machines without StarCraft II.

It is a separate program (`python -m sc2standin`). Clients reach it only through its command line
and its port, as they reach the real game. README.md beside this file describes what is simulated.

    process/      the socket (`server`), a client's status machine (`session`), the state between
                  two requests (`state`)
    requests/     one handler per request
    meeting       connects the processes of two clients in one game
    match         the game of two clients, in the process of one of them
    recording     the record of an episode, its file, and its playback
    layers/       the screen: feature layers, rendered images and panels
    view/         the client's view of the world, as messages
    simulation/   one episode (`game`), its units (`world`), one file per mechanism
    map_reader/   the format of map files: units, places, ground, rules, economy
    data/         unit types, abilities, spells, research, the data tables
    maps/         the map files
    tempers       reported behaviours of the real game that are hard on clients

Imports run one way: `session` → `requests` → `match` → `state` → `meeting`, `tempers`, `view`,
`recording` → `simulation` → `map_reader` → `data`.
"""
