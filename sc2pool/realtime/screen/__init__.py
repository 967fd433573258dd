"""The screen and the keys of a live game.

virtual_display.py  an X server without a monitor (Xvfb), for one game
keyboard.py         key presses on an X server (XTEST)
desktop.py          the same on Windows' desktop, for the game's window
capture.py          pictures of a screen as arrays
"""
