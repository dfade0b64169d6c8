"""Hooks of mkdocs: generated parts take the place of their markers, notebooks and JSON Schemas become pages and files of the site."""

import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
# Whoever calls mkdocs itself, and not `make docs`, has neither on the path.
sys.path[:0] = [str(place) for place in (ROOT, ROOT / "python") if str(place) not in sys.path]

from docsite.generated import filled  # noqa: E402
from docsite.notebooks import as_markdown  # noqa: E402
from sensorbench.results.json_schemas import SCHEMAS_FOLDER  # noqa: E402

_NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))


def on_config(config: Any) -> Any:
    """Notebooks come last among the tutorials."""
    tutorials: list[Any] = next(entry["Tutorials"] for entry in config.nav if isinstance(entry, dict) and "Tutorials" in entry)
    tutorials += [f"tutorials/{notebook.stem}.md" for notebook in _NOTEBOOKS if f"tutorials/{notebook.stem}.md" not in tutorials]
    return config


def on_files(files: Any, *, config: Any) -> Any:
    """Adds pages of notebooks, and the JSON Schemas."""
    for notebook in _NOTEBOOKS:
        files.append(File.generated(config, f"tutorials/{notebook.stem}.md", content=as_markdown(notebook)))
    for schema in sorted(SCHEMAS_FOLDER.glob("*.schema.json")):
        files.append(File.generated(config, f"reference/schemas/{schema.name}", abs_src_path=str(schema)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """A page's text with its generated parts."""
    return filled(markdown, ROOT / "docs" / page.file.src_uri)
