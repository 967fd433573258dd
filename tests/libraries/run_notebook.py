"""Runs a notebook from top to bottom, as its kernel would, and prints what its cells have shown."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

notebook = nbformat.read(Path(sys.argv[1]), as_version=4)
NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
text = "".join(output.text for output in outputs if output.get("name") == "stdout")
kinds = [kind for output in outputs for kind in output.get("data", {})]
print(json.dumps({"text": text, "kinds": kinds}))
