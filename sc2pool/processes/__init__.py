"""Operating-system processes: start, stop and kill them, and end them with their parent.

    spawn        start a child Python
    with_parent  end a child when its parent ends
    guard        end a paused tree when the program that paused it ends
    tree         identify a process; list, pause and kill a process tree
    exit         notice the end of a child, and describe it in words
    filelock     locks that end with the process that holds them

Most code that depends on the operating system is here, in `pool.ipc` and in `pool.queues`.
"""
