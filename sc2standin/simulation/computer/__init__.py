"""The computer player of a melee.

    levels     how good it is, by difficulty
    plan       what it does next: a pure function of what it has
    computer   does it

It has an economy of its own, by the same rules as the client's, and sees the whole map.
"""
