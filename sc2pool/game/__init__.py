"""One game: `program/` finds, launches and kills the game; the other modules play its episodes."""
