"""The stand-in: an embedded game server for machines without StarCraft II.

It is a program of its own (`python -m sc2pool.standin`), reached only through its command line
and its port, like the real game. See README.md beside this file for what it simulates.

Imports run one way: `server` (the socket) → `session` (one client's status machine) → `requests`
(one handler a request) → `game` (one episode) → `rules`, `combat`, `movement`, `orders` →
`world` (the arrays) → `scenario`, `terrain`, `unit_types`, `abilities` (data).
"""
