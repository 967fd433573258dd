"""`sc2pool tune`: a search for good hyperparameters, on one pool that stays open."""
