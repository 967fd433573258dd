"""What a player of the feature layer interface sees: images of the map, and panels."""
