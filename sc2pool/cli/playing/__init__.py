"""`sc2pool play` and `sc2pool replay`: a trained model plays, a replay becomes a picture."""
