"""The screen and the keys of a live game.

window.py   the picture and the keys of one game: start it, or attach to its window
program.py  the game's process, and an X server without a monitor (Xvfb) for one game
x11.py      an X server's windows, and its keyboard (XTEST)
desktop.py  the windows and the keyboard of Windows' desktop
capture.py  pictures of a screen as arrays, and which of the open windows is the game's
"""
