"""The mini-games against zerglings: a search in the dark, and a fight with banelings."""
