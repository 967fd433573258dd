"""A match: two games of one instance, whose clients play against each other."""
