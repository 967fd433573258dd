"""The pool's decisions, played against a simulated operating system: many rare faults, quickly.

    schedule ─► trainer ─ the real Pool ─► system ─► world ─► workers      `play` joins them
                   └ checks every transition, every error, and what is left in the end

Everything between `Pool` and the operating system is the pool's own code; the workers, the clock,
the descriptors and the processes are simulated, in one process and one thread. Rule: a schedule
plays the same every time, so it can be written down, shortened (`shrink`) and kept as a test.
"""
