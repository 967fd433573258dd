"""The command line: `sc2pool train`, `sc2pool standin`."""
