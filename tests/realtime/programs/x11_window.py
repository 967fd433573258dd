"""A blue window on an X server: `x11_window.py TITLE`. At each key event the program prints "down"
or "up", and the key's X11 number."""

from __future__ import annotations

import os
import sys

from Xlib import X, Xatom
from Xlib.display import Display

WIDTH, HEIGHT = 160, 120
BLUE = 0x0000FF

display = Display()
screen = display.screen()
window = screen.root.create_window(
    *(0, 0, WIDTH, HEIGHT, 0, screen.root_depth),
    background_pixel=BLUE,
    event_mask=X.KeyPressMask | X.KeyReleaseMask,
)
window.set_wm_name(sys.argv[1])
window.change_property(display.intern_atom("_NET_WM_PID"), Xatom.CARDINAL, 32, [os.getpid()])
window.map()
display.sync()
print("open", flush=True)
while True:
    event = display.next_event()
    if event.type in (X.KeyPress, X.KeyRelease):
        how = "down" if event.type == X.KeyPress else "up"
        print(how, hex(display.keycode_to_keysym(event.detail, 0)), flush=True)
