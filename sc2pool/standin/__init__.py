"""The stand-in: an embedded game server for machines without StarCraft II.

It is a separate program (`python -m sc2pool.standin`). Clients reach it only through its
command line and its port, as they reach the real game. README.md beside this file
says what it simulates.

Imports run one way: `server` (the socket) → `session` (one client's status machine) → `requests`
(one handler per request) → `game` (one episode) → `rules`, `combat`, `movement`, `orders` →
`world` (the arrays) → `scenario`, `terrain`, `unit_types`, `abilities` (data).
"""
