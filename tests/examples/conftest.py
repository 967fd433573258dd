"""The example envs, where their games are installed."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # workers and trainer programs inherit it
