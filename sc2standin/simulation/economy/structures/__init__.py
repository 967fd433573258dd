"""Activities of structures: make units, add-ons, upgrades, lift off, land, call down MULEs."""
