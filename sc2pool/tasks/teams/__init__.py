"""Team tasks: several agents in one game, each a row of the env; SMAC's scenarios are in `smac`."""
