"""Notebooks as pages: what they say, their code, and what it printed when they were last executed."""

import json
from pathlib import Path
from typing import Any


def as_markdown(notebook: Path) -> str:
    """A notebook as the text of a page."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join(part for cell in cells for part in _cell(cell) if part) + "\n"


def _cell(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"]).strip()
    if cell["cell_type"] == "markdown":
        return [source]
    if cell["cell_type"] != "code" or not source:
        return []
    return [_fenced("python", source), *map(_output, cell["outputs"])]


def _output(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _fenced("text", "".join(output["text"]).rstrip())
    data = output.get("data", {})
    if "text/html" in data:
        # A blank line would end the block of HTML.
        shown = "\n".join(line for line in "".join(data["text/html"]).splitlines() if line.strip())
        return f'<div class="notebook-output">\n{shown}\n</div>'
    if "image/svg+xml" in data:
        return "".join(data["image/svg+xml"])
    if "image/png" in data:
        return f'<img alt="" src="data:image/png;base64,{"".join(data["image/png"]).strip()}">'
    return _fenced("text", "".join(data["text/plain"])) if "text/plain" in data else ""


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"
