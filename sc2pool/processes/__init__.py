"""Operating-system processes: how they are started, stopped, killed, and ended with their parent.

    spawn        start a child Python
    with_parent  end a child when its parent ends
    guard        end a paused tree when the program that paused it ends
    tree         know a process again, find, pause and kill a process tree
    exit         notice the end of a child, and describe it in words
    filelock     locks that end with the process that holds them

Together with `pool.ipc` and `pool.queues` this is the place that knows operating systems.
"""
