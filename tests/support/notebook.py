"""The example notebook: runs it, and writes it with its outputs.

python tests/support/notebook.py        # after a change of examples/recordings.ipynb
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "examples/recordings.ipynb"


def read() -> Any:
    import nbformat

    return nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]


def run(notebook: Any) -> None:
    """Execute all cells; their outputs are in the notebook afterwards."""
    import nbclient

    folder = {"metadata": {"path": str(NOTEBOOK.parent)}}
    client = nbclient.NotebookClient(notebook, timeout=300, resources=folder)
    client.execute()


def kinds(cell: Any) -> list[str]:
    """Return the kinds of a cell's outputs, without those of standard error."""
    return [each.get("name", each.output_type) for each in shown(cell)]


def shown(cell: Any) -> list[Any]:
    """Return a cell's outputs without those of standard error, which have paths of a machine."""
    return [each for each in cell.get("outputs", []) if each.get("name") != "stderr"]


def main() -> None:
    """Run the notebook, and write it with its outputs."""
    import nbformat

    os.environ["PYTHONPATH"] = str(ROOT)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    notebook = read()
    run(notebook)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = shown(cell)
    nbformat.write(notebook, NOTEBOOK)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
