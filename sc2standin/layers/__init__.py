"""The feature layer interface: images of the map, and panels."""
