"""Makes psutil refuse what Wine does not tell, in place of an answer that is wrong.

Wine does not say which process a connection belongs to. A system may refuse that, too, and then
sc2pool takes the listener on a game's port as unproven. Imported at the start of each Python under
Wine, by `sc2pool.pth`.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

if sys.platform == "win32" and hasattr(ctypes.WinDLL("ntdll"), "wine_get_version"):
    import psutil

    def refuse(self: Any, **_: Any) -> Any:
        raise psutil.AccessDenied(self.pid)

    psutil.Process.net_connections = refuse
