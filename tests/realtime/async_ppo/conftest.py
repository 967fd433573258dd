"""Models and envs that `AsyncPPO` trains in a process of its own import from this folder."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
