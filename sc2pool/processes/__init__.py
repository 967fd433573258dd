"""Operating-system processes: start, stop and kill them, and end them with their parent.

    spawn          start a child Python or a thread; run a function that Ctrl-C does not interrupt;
                   describe the end of a child in words
    with_parent    end a child when its parent ends
    guard          end a paused tree when the program that paused it ends
    tree           identify a process; list, pause and kill a process tree
    filelock       locks that end with the process that holds them
    windows        the parts that only Windows has

Most code that depends on the operating system is here, in `pool.ipc` and in `pool.queues`.
"""
