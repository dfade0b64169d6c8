"""A static site of bundles: one page, one file of data, a file of details for each comparison, and the bundles themselves.

The site needs no server: data are scripts that assign, which pages opened from a disk may load, too. Nothing is requested from elsewhere.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from sensorbench.paths import SITE_FILE, SITE_KIND, check_page_is_free
from sensorbench.report.build import page_environment
from sensorbench.report.site_data import CURVE_SHARES, VERDICTS, BundleOnSite
from sensorbench.results.files import whole_file, write_text

PAGE_FILE, DATA_FILE = "index.html", "data.js"
DETAILS_FOLDER, BUNDLES_FOLDER = "details", "bundles"


class SiteMarker(BaseModel):
    """`site.json`: that a folder is a site of ours, and which files of it are."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str = SITE_KIND
    files: list[str]


def marker_of(folder: Path) -> SiteMarker | None:
    """The marker of a site; None if there is none, or one that is not ours."""
    try:
        found = SiteMarker.model_validate_json((folder / SITE_FILE).read_bytes())
    except (OSError, ValidationError):
        return None
    return found if found.kind == SITE_KIND else None


def write_site(
    folder: Path,
    shown: Sequence[BundleOnSite],
    files: Mapping[str, Path],
    generated: datetime,
    price_per_hour: float | None,
) -> Path:
    """Writes a site.

    Args:
        folder: where it goes; the files of a site of ours there are replaced.
        shown: what it shows.
        files: the bundles, by where the site has them.
        generated: when it was made.
        price_per_hour: of the machine; None if nobody gave one.

    Returns:
        Its page.

    Raises:
        UsageError: the page's place has a page that is not ours.

    """
    texts = {
        DATA_FILE: _assigned("SITE", _data(shown, generated, price_per_hour)),
        **{f"{DETAILS_FOLDER}/{on.bundle.id}.js": _added(on.bundle.id, _details(on)) for on in shown},
    }
    version = hashlib.sha256("".join(texts.values()).encode()).hexdigest()[:12]
    texts[PAGE_FILE] = page_environment().get_template("site.html.j2").render(version=version)
    check_page_is_free(folder / PAGE_FILE)
    before = marker_of(folder)
    kept = {*texts, *files}
    folder.mkdir(parents=True, exist_ok=True)
    # Whatever ends the process, the marker names all files of ours.
    names = sorted(kept | set(before.files if before else []))
    write_text(folder / SITE_FILE, SiteMarker(files=names).model_dump_json(indent=1) + "\n")
    for name in set(before.files if before else []) - kept:
        if _is_inside(name):
            (folder / name).unlink(missing_ok=True)
    for name, source in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        with whole_file(folder / name) as unfinished:
            shutil.copyfile(source, unfinished)
    for name, text in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        write_text(folder / name, text)
    write_text(folder / SITE_FILE, SiteMarker(files=sorted(kept)).model_dump_json(indent=1) + "\n")
    return folder / PAGE_FILE


def _is_inside(name: str) -> bool:
    """Whether the name of a file stays inside the site."""
    return not Path(name).is_absolute() and ".." not in Path(name).parts


def _data(shown: Sequence[BundleOnSite], generated: datetime, price_per_hour: float | None) -> dict[str, Any]:
    return {
        "generated": generated.date().isoformat(),
        "pricePerHour": price_per_hour,
        "shares": CURVE_SHARES,
        "verdicts": VERDICTS,
        "bundles": [asdict(on.bundle) for on in shown],
        "comparisons": [asdict(comparison) for on in shown for comparison in on.comparisons],
    }


def _details(on: BundleOnSite) -> dict[str, Any]:
    of_variants = {
        comparison: {variant: asdict(details) for variant, details in variants.items()}
        for comparison, variants in on.variants.items()
    }
    return {**asdict(on.details), "variants": of_variants}


def _assigned(name: str, content: object) -> str:
    return f"window.{name} = {_json(content)};\n"


def _added(key: str, content: object) -> str:
    return f"(window.DETAILS ??= {{}})[{_json(key)}] = {_json(content)};\n"


def _json(content: object) -> str:
    """JSON that a script may hold."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
