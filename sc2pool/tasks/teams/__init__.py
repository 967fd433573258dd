"""Team tasks: several agents in one game, each a row of the env. `smac` has SMAC's scenarios."""
