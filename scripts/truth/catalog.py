"""Reads the game's own data: the XML catalogs of its mods, merged as the game merges them.

An entry of a mod changes fields of the entry that has the same id in earlier mods. An entry
inherits all other fields from its parent, or from the defaults of its class.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

MELEE = ("core", "liberty", "swarm", "void", "voidmulti")
"""The mods of a melee map, each after those that it depends on.

`libertymulti` and `swarmmulti` are left out, because `void` repeats their changes, and the indices
into lists in `void` are right only without these two mods.
"""
LIBERTY = ("core", "liberty")
"""The mods of a map that depends on Liberty alone, such as SMAC's maps."""
KINDS = ("Unit", "Weapon", "Effect", "Behavior", "Footprint", "Mover", "Abil", "Upgrade")
LISTS = {
    "WeaponArray",
    "BehaviorArray",
    "EffectArray",
    "PeriodicEffectArray",
    "CaseArray",
    "MotionPhases",
    "AbilArray",
    "CardLayouts",
    "LayoutButtons",
}
"""Fields that are lists: an element without an index is appended instead of replacing a value."""


@dataclass
class Node:
    """An entry of a catalog or a field of an entry: the attributes, and the fields inside."""

    tag: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    fields: dict[str, dict[str, Node]] = field(default_factory=dict)

    def merge(self, newer: Node) -> None:
        """Overwrite attributes and fields of this node with those of a newer node."""
        self.tag = newer.tag or self.tag
        self.attributes |= newer.attributes
        for name, items in newer.fields.items():
            mine = self.fields.setdefault(name, {})
            for index, item in items.items():
                if item.attributes.get("removed") == "1":
                    mine.pop(index, None)
                else:
                    mine.setdefault(index, Node()).merge(item)

    def items(self, name: str) -> Iterator[Node]:
        """The elements of a list."""
        yield from self.fields.get(name, {}).values()

    def at(self, name: str, index: str = "0") -> Node:
        """One element of a list, or an empty node."""
        return self.fields.get(name, {}).get(index, Node())

    def text(self, name: str, index: str = "0", attribute: str = "value") -> str:
        """A field's value, or an empty text if the field is missing."""
        return self.at(name, index).attributes.get(attribute, "")

    def number(self, name: str, index: str = "0", default: float = 0.0) -> float:
        """A field's value as a number."""
        return float(self.text(name, index) or default)

    def flags(self, name: str) -> list[str]:
        """The indices in a field at which the value is 1."""
        return [index for index in self.fields.get(name, {}) if self.text(name, index) == "1"]


def node_of(element: ET.Element, before: Node) -> Node:
    """The node of an XML element; `before` is the node into which the new node will be merged."""
    node = Node(element.tag, dict(element.attrib))
    for child in element:
        if not isinstance(child.tag, str):
            continue  # a comment
        mine = node.fields.setdefault(child.tag, {})
        index = child.get("index")
        if index is None:
            known = before.fields.get(child.tag, {}).keys() | mine.keys()
            index = str(len(known)) if child.tag in LISTS else "0"
        mine[index] = node_of(child, before.at(child.tag, index))
    return node


class Catalog:
    """The entries of one kind (such as units), with their inherited fields."""

    def __init__(self, kind: str, folders: Iterable[Path]) -> None:
        self.kind = kind
        self._own: dict[str, Node] = {}
        self._defaults: dict[str, Node] = {}
        self._resolved: dict[str, Node] = {}
        for folder in folders:
            for element in ET.parse(folder / f"{kind}Data.xml").getroot():
                if isinstance(element.tag, str) and element.tag.startswith(f"C{kind}"):
                    self._add(element)

    def _add(self, element: ET.Element) -> None:
        name = element.get("id")
        table, key = (self._own, name) if name else (self._defaults, element.tag)
        entry = table.setdefault(str(key), Node())
        entry.attributes |= element.attrib
        # The indices of a list's elements also count the inherited elements.
        inherits = entry.attributes.get("parent") in self._own
        entry.merge(node_of(element, self._inherited(str(name)) if inherits else entry))

    def __contains__(self, name: str) -> bool:
        return name in self._own

    def __getitem__(self, name: str) -> Node:
        """An entry with all inherited fields.

        Raises:
            KeyError: No entry of the catalog has this name.
        """
        if name not in self._resolved:
            self._resolved[name] = _named(self._inherited(name), name)
        return self._resolved[name]

    def _inherited(self, name: str) -> Node:
        own = self._own[name]
        parent = own.attributes.get("parent")
        node = Node()
        if parent in self._own:
            node.merge(self._inherited(parent))
        else:
            for tag in (f"C{self.kind}", own.tag):
                node.merge(self._defaults.get(tag, Node()))
        node.merge(own)
        return node


def _named(node: Node, name: str) -> Node:
    """The node with the entry's id in place of the token `##id##`."""
    return Node(
        node.tag,
        {key: value.replace("##id##", name) for key, value in node.attributes.items()},
        {
            key: {index: _named(item, name) for index, item in items.items()}
            for key, items in node.fields.items()
        },
    )


class GameData:
    """The merged catalogs of some mods, by kind."""

    def __init__(self, folder: Path, mods: Iterable[str]) -> None:
        folders = [folder / f"{mod}.sc2mod" / "base.sc2data" / "GameData" for mod in mods]
        self._catalogs = {kind: Catalog(kind, folders) for kind in KINDS}

    def __getitem__(self, kind: str) -> Catalog:
        return self._catalogs[kind]
