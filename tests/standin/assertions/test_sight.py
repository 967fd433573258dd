"""Assertions about a player's sight: fog, cloak, hallucinations, snapshots, effects, enemies."""

from __future__ import annotations

import numpy as np
import pytest
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.units import unit_id
from tests.standin.assertions.conftest import of, put, units
from tests.standin.sessions import Wire, options
from tests.support.duels import Pair

MOVE, SCAN, HALLUCINATE_PHOENIX, GUARDIAN_SHIELD, GRAVITON_BEAM = 16, 399, 154, 76, 173
GUARDIAN_SHIELD_BUFF, GRAVITON_BEAM_BUFF, GUARDIAN_SHIELD_EFFECT = 18, 5, 2
HERE, THERE = (30, 30), (58, 66)
"""Two places that cannot be seen from each other, or from the players' starting places."""


def cloaked_shown() -> sc_pb.InterfaceOptions:
    """Interface options that ask for layers, raw data and cloaked units."""
    interface = options()
    interface.show_cloaked = True
    return interface


@pytest.fixture
def duel(begin_duel):
    """Begin a game of two clients with the named units of each player."""

    def begin(*named: tuple, **fields) -> tuple[Wire, Wire]:
        clients = begin_duel(**fields)
        for player, client in enumerate(clients, 1):
            mine = [one for one in named if one[1] == player]
            if mine:
                client.spawn(*units(*mine))
        return clients

    return begin


def energize(client: Wire, name: str) -> None:
    (unit,) = of(client, name)
    client.set_value(unit, "Energy", 75)


def seen(clients: tuple[Wire, Wire], name: str, owner: int) -> list[raw_pb.Unit]:
    """The only unit of this type, as each of the two clients sees it."""
    found = []
    for client in clients:
        (unit,) = of(client, name, owner)
        found.append(unit)
    return found


def near_layer(client: Wire, name: str) -> int:
    """The largest pixel value of a feature layer of the screen."""
    image = getattr(client.observe().feature_layer_data.renders, name)
    data = np.frombuffer(image.data, np.uint8)
    return int((np.unpackbits(data) if image.bits_per_pixel == 1 else data).max())


class TestHallucinations:
    def test_p21_only_its_owner_knows_it_unless_a_detector_is_near(self, duel, pair: Pair):
        clients = host, guest = duel(("Sentry", 1, 30, 30), ("Marine", 2, 34, 30), disable_fog=True)
        pair.step(3)
        energize(host, "Sentry")
        pair.step(3)
        host.order(of(host, "Sentry"), HALLUCINATE_PHOENIX)
        pair.step(16)
        flags = [unit.is_hallucination for unit in seen(clients, "Phoenix", 1)]
        assert flags == [True, False]
        (phoenix,) = of(host, "Phoenix")
        guest.spawn(*units(("Observer", 2, phoenix.pos.x, phoenix.pos.y)))
        pair.step(16)
        assert all(unit.is_hallucination for unit in seen(clients, "Phoenix", 1))

    def test_s13_a_hallucination_is_marked_and_its_sentry_is_not(self, begin):
        wire = begin()
        put(wire, ("Sentry", 1, 44, 48))
        energize(wire, "Sentry")
        wire.step(2)
        wire.order(of(wire, "Sentry"), HALLUCINATE_PHOENIX)
        wire.step(16)
        assert [unit.is_hallucination for unit in of(wire, "Phoenix")] == [True]
        assert [unit.is_hallucination for unit in of(wire, "Sentry")] == [False]


class TestCloak:
    FAR_APART = ("Sentry", 1, 30, 30), ("DarkTemplar", 2, 37, 30)

    def test_p22_an_enemy_is_absent_unless_the_interface_shows_cloaked_units(self, duel, pair):
        host, guest = duel(*self.FAR_APART)
        pair.step(4)
        assert of(host, "DarkTemplar", 2) == []
        assert len(of(guest, "DarkTemplar", 2)) == 1

    def test_p23_p24_what_is_shown_of_it_without_and_with_a_detector(self, duel, pair):
        host, guest = duel(*self.FAR_APART, interface=cloaked_shown())
        pair.step(4)
        (shown,) = of(host, "DarkTemplar", 2)
        assert (shown.display_type, shown.cloak) == (raw_pb.Hidden, raw_pb.Cloaked)
        assert (shown.health, shown.shield) == (0, 0)
        host.spawn(*units(("Observer", 1, 33, 30)))
        pair.step(16)
        (shown,) = of(host, "DarkTemplar", 2)
        assert (shown.display_type, shown.cloak) == (raw_pb.Visible, raw_pb.CloakedDetected)
        assert (shown.health, shown.shield) == (40, 80)
        (own,) = of(guest, "DarkTemplar", 2)
        assert (own.display_type, own.cloak) == (raw_pb.Visible, raw_pb.CloakedAllied)

    def test_p23_a_cloaked_unit_is_in_its_layer(self, duel, pair):
        _, guest = duel(*self.FAR_APART, interface=cloaked_shown())
        pair.step(4)
        camera = raw_pb.ActionRawCameraMove()
        camera.center_world_space.x, camera.center_world_space.y = 37, 30
        guest.act(sc_pb.Action(action_raw=raw_pb.ActionRaw(camera_move=camera)))
        pair.step(4)
        assert near_layer(guest, "cloaked") == 1

    def test_s11_ten_enemies_are_all_listed(self, begin):
        wire = begin(interface=cloaked_shown())
        put(wire, ("Overlord", 1, 48, 50), ("DarkTemplar", 2, 50, 50, 10))
        templars = of(wire, "DarkTemplar", 2)
        assert [one.cloak for one in templars] == [raw_pb.Cloaked] * 10


class TestFog:
    def test_p26_an_enemy_in_the_fog_is_absent_or_hidden_without_fog(self, duel, pair):
        host, _ = duel(("Marine", 2, *THERE))
        pair.step(4)
        assert of(host, "Marine", 2) == []
        shown = [
            unit
            for unit in host.observed(disable_fog=True).observation.raw_data.units
            if unit.unit_type == unit_id("Marine")
        ]
        (marine,) = shown
        assert (marine.display_type, marine.alliance) == (raw_pb.Hidden, raw_pb.Enemy)
        assert marine.cloak == raw_pb.CloakedUnknown

    def test_p31_a_building_is_remembered_once_its_scout_is_dead(self, duel, pair):
        host, _ = duel(("Overlord", 1, 58, 62), ("Pylon", 2, *THERE))
        pair.step(8)
        (pylon,) = of(host, "Pylon", 2)
        assert pylon.display_type == raw_pb.Visible
        host.kill(of(host, "Overlord"))
        pair.step(100)
        (remembered,) = of(host, "Pylon", 2)
        assert remembered.display_type == raw_pb.Snapshot
        assert not remembered.is_active

    def test_p30_p32_without_fog_enemies_are_visible_and_their_orders_are_not(self, duel, pair):
        host, guest = duel(("Marine", 1, *HERE), ("Marine", 2, *THERE), disable_fog=True)
        pair.step(4)
        for player, client, goal in ((1, host, (33, 30)), (2, guest, (55, 66))):
            client.order(of(client, "Marine", player), MOVE, goal)
        pair.step(4)
        for mine, client in ((1, host), (2, guest)):
            (own,) = of(client, "Marine", mine)
            (enemy,) = of(client, "Marine", 3 - mine)
            assert (enemy.display_type, enemy.alliance) == (raw_pb.Visible, raw_pb.Enemy)
            assert [order.ability_id for order in own.orders] != []
            assert not enemy.orders

    def test_s27_a_scan_costs_50_energy_and_shows_what_is_remembered_later(self, begin):
        wire = begin(interface=options())
        put(wire, ("OrbitalCommand", 1, 44.5, 40.5), ("Hatchery", 2, 56.5, 70.5), loops=10)
        (orbital,) = of(wire, "OrbitalCommand")
        assert 50.30 <= orbital.energy <= 50.32
        assert of(wire, "Hatchery", 2) == []
        wire.order(orbital, SCAN, (56.5, 70.5))
        wire.step(15)
        (orbital,) = of(wire, "OrbitalCommand")
        assert 0.83 <= orbital.energy <= 0.85
        (hatchery,) = of(wire, "Hatchery", 2)
        assert (hatchery.display_type, hatchery.is_on_screen) == (raw_pb.Visible, False)
        wire.step(300)
        (hatchery,) = of(wire, "Hatchery", 2)
        assert hatchery.display_type == raw_pb.Snapshot


class TestSpells:
    def test_p27_a_guardian_shield_is_on_units_of_the_ground_for_both_players(self, duel, pair):
        friends = ("Sentry", 1, 30, 30), ("Stalker", 1, 28, 30), ("Phoenix", 1, 30, 28)
        clients = host, _ = duel(*friends, ("Overlord", 2, 38, 30), disable_fog=True)
        for client in clients:
            client.toggle(debug_pb.god)
        pair.step(3)
        energize(host, "Sentry")
        pair.step(3)
        host.order(of(host, "Sentry"), GUARDIAN_SHIELD)
        pair.step(16)
        for client, alliance in zip(clients, (raw_pb.Self, raw_pb.Enemy), strict=True):
            buffs = {
                name: list(of(client, name)[0].buff_ids)
                for name in ("Sentry", "Stalker", "Phoenix")
            }
            assert buffs == {
                "Sentry": [GUARDIAN_SHIELD_BUFF],
                "Stalker": [GUARDIAN_SHIELD_BUFF],
                "Phoenix": [],
            }
            (effect,) = client.observe().raw_data.effects
            assert (effect.effect_id, effect.owner) == (GUARDIAN_SHIELD_EFFECT, 1)
            assert (effect.pos[0].x, effect.pos[0].y) == pytest.approx((30, 30), abs=0.5)
            assert effect.radius > 3
            assert effect.alliance == alliance

    def test_p28_a_graviton_beam_is_on_its_target_alone(self, duel, pair):
        clients = host, _ = duel(("Phoenix", 1, 30, 30), ("Stalker", 2, 33, 30), disable_fog=True)
        for client in clients:
            client.toggle(debug_pb.god)
        pair.step(3)
        energize(host, "Phoenix")
        pair.step(3)
        (stalker,) = of(host, "Stalker", 2)
        host.order(of(host, "Phoenix"), GRAVITON_BEAM, target=stalker)
        pair.step(32)
        for client in clients:
            assert GRAVITON_BEAM_BUFF in of(client, "Stalker", 2)[0].buff_ids
            assert not of(client, "Phoenix")[0].buff_ids
