"""Path finding around cliffs, structures and resources, on maps that have any.

    blocks   which cells are blocked, and by what
    field    the distances of cells to a goal
    routes   the next straight leg of a unit's way, where what blocks may change
    detours  the same where cliffs alone block, for crowds

Units are points here: they may touch what they walk around. Other units do not block the way.
"""
