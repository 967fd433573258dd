"""`sc2pool train`: an algorithm on a pool of games, and the folder that the run keeps."""
