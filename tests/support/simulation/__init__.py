"""Plays a real pool against a simulated operating system, so tests show many rare faults quickly.

    schedule ─► trainer ─ the real Pool ─► system ─► world ─► workers      `play` joins them.
                   └ checks every transition, every error, and what is left in the end.

`Pool` and all code between it and the operating system are real. The workers, the clock, the
descriptors and the processes are simulated, in one process and one thread. A schedule must play the
same every time, so that it can be written down, shortened (`shrink`) and kept as a test.
"""
