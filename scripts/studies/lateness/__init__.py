"""How late actions come in games that do not wait, by how one learns: see `realtime_report`."""
