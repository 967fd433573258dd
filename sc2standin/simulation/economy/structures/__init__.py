"""What structures do: make units, add-ons and upgrades, lift off and land, call down MULEs."""
