"""What a pool has on the machine: worker processes, the folder of a run, a watchdog over all."""
