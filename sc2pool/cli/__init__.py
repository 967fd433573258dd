"""The command line: `sc2pool` and its subcommands."""
