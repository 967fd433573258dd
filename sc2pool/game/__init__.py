"""One game: find the installation, lease a port, launch and kill, speak, live an episode."""
