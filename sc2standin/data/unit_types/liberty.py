"""The unit types of SMAC's scenarios, as far as they differ from a melee game's types.

SMAC's maps depend on the mod Liberty alone, so weapons are those of Wings of Liberty. The enemies'
types have standard ids. The client's units have copied types, which have their own ids, and names
that end in `_RL`. SMAC tells the copied types apart by the order of their ids. Life, speeds and
energy of the copied types are in the maps' unit data.

Each real map has its own copied types. In the stand-in all of SMAC's maps share nine copied types.
As SMACv2 expects, nine more copied types on its map have the highest ids, ordered by name.

The ids of copied types begin after the last standard id (2056). Copied types of one map have
consecutive ids, in the order of the real map. Copied types fire and heal only by order.
"""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

from sc2standin.data.jsonc import read
from sc2standin.data.unit_types import files
from sc2standin.data.unit_types.files import DOES, NUMBERS_OF, TYPE_BY_ID, TYPE_BY_NAME
from sc2standin.data.unit_types.kinds import UnitType

FIRST_COPY_ID = 2057

LIBERTY: dict[str, UnitType] = {
    name: TYPE_BY_NAME[name]
    if numbers == NUMBERS_OF[name]
    else files.type_of_entry(f"{name}_Liberty", files.combined(numbers, DOES[name]))
    for name, numbers in read(files.LIBERTY)
}
"""The enemies' types, by their names in the real maps, in the order of the copies' ids."""

COPIES: dict[str, UnitType] = {
    f"{name}_RL": replace(kind, id=FIRST_COPY_ID + i, name=f"{name}_RL", passive=True)
    for i, (name, kind) in enumerate(LIBERTY.items())
    if kind.mobile
}
"""The client's types, by their names in the real maps."""

LAST_COPIES: tuple[UnitType, ...] = tuple(
    replace(kind, id=FIRST_COPY_ID + len(COPIES) + i)
    for i, kind in enumerate(sorted(COPIES.values(), key=attrgetter("name")))
)
"""The client's types on SMACv2's map."""

BY_NAME = TYPE_BY_NAME | {kind.name: kind for kind in (*LIBERTY.values(), *COPIES.values())}
"""All types that a map file can name."""

BY_ID = TYPE_BY_ID | {kind.id: kind for kind in (*LIBERTY.values(), *COPIES.values(), *LAST_COPIES)}
"""All types that a debug command can create on SMAC's and SMACv2's maps."""
