"""The notebook of the documentation runs from the first cell to the last, and lies there without outputs.

`make notebook` (`python -m tests.test_notebook`) takes out what a session with it left.
"""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

NOTEBOOK = Path(__file__).parent.parent / "docs" / "tutorials" / "notebook.ipynb"


def stripped(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A notebook without outputs, counts, and what an editor notes of its kernel."""
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return notebook


def execute(notebook: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
    """A notebook with the outputs that its cells have in a folder. Raises CellExecutionError."""
    return NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()


def read(path: Path = NOTEBOOK) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def test_the_notebook_runs(tmp_path: Path) -> None:
    executed = execute(read(), tmp_path)
    shown = [str(output) for cell in executed.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("confidence interval" in output for output in shown), "results are shown as a table"
    assert any("vega-embed" in output for output in shown), "a chart is drawn"
    assert (tmp_path / "results" / "first" / "report.html").exists()


def test_a_cell_that_fails_is_found(tmp_path: Path) -> None:
    planted = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import sensorbench as sb; sb.read('none')")])
    with pytest.raises(CellExecutionError, match="no results are there"):
        execute(planted, tmp_path)


def test_the_notebook_lies_there_without_outputs() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert nbformat.writes(stripped(read())).rstrip() == text.rstrip(), "make notebook"
    assert len(text) < 20_000


if __name__ == "__main__":
    NOTEBOOK.write_text(nbformat.writes(stripped(read())) + "\n", encoding="utf-8")
