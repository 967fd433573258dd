"""One game: `program/` finds, launches and kills it; the rest speaks with it for an episode."""
