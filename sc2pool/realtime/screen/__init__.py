"""The screen and the keys of a live game.

`window.py` starts a game or attaches to its window, and has its picture and keys.
`program.py` has the game's process, and an X server without a monitor (Xvfb) for one game.
`x11.py` has an X server's windows, and its keyboard (XTEST).
`desktop.py` has the windows and the keyboard of Windows' desktop.
`capture.py` makes arrays of a screen's picture, and finds the game's window.
"""
