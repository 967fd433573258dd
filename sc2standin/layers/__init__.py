"""The interfaces with a screen: feature layers and rendered images of the map, and panels."""
