"""One game: `program/` finds, launches and kills it; the other modules play episodes with it."""
