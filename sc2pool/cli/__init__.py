"""The command `sc2pool` and its subcommands."""
