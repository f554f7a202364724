"""Executes examples/first_look.ipynb and writes its outputs into it; with --check, compares them with what is there.

`make docs` checks, `make notebook` writes. Nothing of the machine is kept: no path, no time, no version of a kernel.
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

PATH = Path(__file__).parent.parent / "examples" / "first_look.ipynb"


def main(checking: bool) -> None:
    """Execute the notebook and write it, or say which cell gives something else."""
    kept = nbformat.read(PATH, as_version=4)
    fresh = NotebookClient(_bare(kept), timeout=300, kernel_name="python3").execute()
    fresh.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    if not checking:
        nbformat.write(fresh, PATH)
        return
    for number, (one, two) in enumerate(zip(kept.cells, fresh.cells, strict=True), 1):
        if one.get("outputs") != two.get("outputs"):
            sys.exit(f"cell {number} of {PATH.name} gives something else now: run `make notebook` and look at it")


def _bare(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook without outputs and without what a run notes down about itself."""
    cells = []
    for number, cell in enumerate(notebook.cells, 1):
        new = nbformat.v4.new_code_cell if cell.cell_type == "code" else nbformat.v4.new_markdown_cell
        cells.append(new(cell.source, id=f"cell-{number}", metadata={}))
    return nbformat.v4.new_notebook(cells=cells)


if __name__ == "__main__":
    main("--check" in sys.argv[1:])
