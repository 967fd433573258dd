"""Runs a notebook from top to bottom, as its kernel would, and prints the output of its cells.

`run_notebook.py NOTEBOOK [STEPS]`. If STEPS is given, each training takes this number of steps.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

path, *steps = sys.argv[1:]
notebook = nbformat.read(Path(path), as_version=4)
if steps:
    for cell in notebook.cells:
        cell.source = re.sub(r"\.learn\([\d_]+\)", f".learn({steps[0]})", cell.source)
NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
text = "".join(output.text for output in outputs if output.get("name") == "stdout")
kinds = [kind for output in outputs for kind in output.get("data", {})]
print(json.dumps({"text": text, "kinds": kinds}))
