"""The generated parts of pages, by name."""

import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

from docsite import command_line, file_keys, lists, url_options

ROOT = Path(__file__).parent.parent

PARTS: dict[str, Callable[[], str]] = {
    "cli": command_line.reference,
    "files": file_keys.reference,
    "urls": url_options.reference,
    "exit-codes": lists.exit_codes,
    "environment": lists.environment_variables,
    "datasets": lists.datasets,
    "support": lists.support_matrix,
    "official-images": lists.official_images,
    "quantities": lists.quantities,
    "openmetrics": lists.openmetrics,
    "json-schemas": lists.json_schemas,
    "schemas": lists.schemas,
    "duplicate-rules": lists.duplicate_rules,
    "recommended-batches": lists.recommended_batches,
    "tsbs-cpu-queries": partial(lists.tsbs_queries, "tsbs_cpu"),
    "tsbs-iot-queries": partial(lists.tsbs_queries, "tsbs_iot"),
    "tsm-queries": partial(lists.tsbs_queries, "tsm"),
    "iot-benchmark-queries": partial(lists.tsbs_queries, "iot_benchmark"),
}
_MARKER = re.compile(r"^<!-- generated: (?P<name>[\w-]+) -->$", re.MULTILINE)
_FILE = re.compile(r"^<!-- file: (?P<path>\S+) -->$", re.MULTILINE)


@cache
def part(name: str) -> str:
    """A generated part. Raises KeyError for a name that nothing has."""
    return PARTS[name]()


def filled(text: str, page: Path) -> str:
    """The text of a page with generated parts and files in the place of their markers."""
    text = _MARKER.sub(lambda found: part(found["name"]), text)
    return _FILE.sub(lambda found: _file(found["path"], page), text)


def _file(path: str, page: Path) -> str:
    """A document of the project, without its heading, its links as they are from the page."""
    text = (ROOT / path).read_text(encoding="utf-8").partition("\n")[2].strip()
    here = page.parent.relative_to(ROOT / "docs").as_posix()

    def link(found: re.Match[str]) -> str:
        label, target = found["label"], found["target"]
        if re.match(r"https?://|#", target):
            return found[0]
        place = normpath((PurePosixPath(path).parent / target).as_posix())
        if place.startswith("docs/"):
            return f"[{label}]({relpath(place.removeprefix('docs/'), here)})"
        # A file that is not of the site: its name is what readers of a checkout need.
        return f"{label} (`{place}`)" if label.strip("`") != place else f"`{place}`"

    return re.sub(r"\[(?P<label>[^\]]*)\]\((?P<target>[^)\s]+)\)", link, text)
