"""Starts, stops and kills operating-system processes, and ends them with their parent.

The module spawn starts child Pythons and threads, runs work that Ctrl-C must not interrupt, and
describes the end of a child in words.
The module with_parent ends a child when its parent ends.
The module guard kills a paused process tree when the program that paused it ends.
The module tree identifies processes, and lists, pauses and kills process trees.
The module filelock has file locks that end with the process that holds them.
The module windows has the parts that only Windows has.

Most code that depends on the operating system is in this package, in `pool.ipc` and in
`pool.queues`.
"""
