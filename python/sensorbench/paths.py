"""Where things are put: results into folders that are free, things that can be made again into a cache; and what is ours there.

What sensorbench did not write is never overwritten or deleted, whatever the options. A page is ours by its title, a summary by what it
says it is, a file of a folder of results by its name. All who write where a user says so, or delete, go by the rules here.
"""

import json
import os
import re
import shutil
from datetime import datetime
from pathlib import Path

from sensorbench.errors import UsageError

RESULTS_FOLDER = Path("results")
# The page of results, in their folder.
REPORT_FILE = "report.html"
# In the folder of a site of bundles: which of its files are ours.
SITE_FILE, SITE_KIND = "site.json", "sensorbench-site"
# All pages have it, and stand with it in their first lines.
_OUR_TITLE = "sensorbench</title>"
_FIRST_BYTES = 4096
# What lies in a folder of results, by name: files, and folders of them.
_RESULTS = re.compile(
    r"(manifest|series|summary|gate|load|known_answers|contents|query_plans|failure|measurement|compared|fit)\.json"
    r"|(operations|answers|intervals|events|resources|status)(-\d{6})?\.parquet|reference\.parquet"
    r"|histograms(-\d{6})?\.hlog|history\.jsonl|report\.html|\.reserve|rate|ycsb\.txt|cassandra-stress\.txt|tsbs\.txt|checksums\.txt|spark-driver\.log|.*\.unfinished"
)
_FOLDERS = re.compile(
    r"segments|populate|runs|\d{3,}|run-\d+|round-\d+|trials|confirmation|probe|cells|experiments|executions|charts|data"
)
_DATA_FOLDER, _CHARTS_FOLDER = "data", "charts"
_CHARTS = re.compile(r".*\.(svg|png)(\.\d+\.unfinished)?")


def cache_folder(name: str) -> Path:
    """A folder for things of one kind: below SENSORBENCH_CACHE, else below the user's cache folder. It is made."""
    root = os.environ.get("SENSORBENCH_CACHE")
    user_cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = (Path(root) if root else Path(user_cache) / "sensorbench") / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def new_results_folder(name: str) -> Path:
    """A folder for new results that is not there yet, below the one that all results go to unless somebody says otherwise."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    candidates = (RESULTS_FOLDER / (f"{name}-{stamp}" if not number else f"{name}-{stamp}-{number}") for number in range(1000))
    return next(folder for folder in candidates if not folder.exists())


def check_is_free(folder: Path, otherwise: str = "") -> None:
    """Raises UsageError unless a folder that is named by --out is empty or not there; `otherwise` says what else can be done."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not empty; name another folder with --out{otherwise}")


def check_page_is_free(page: Path) -> None:
    """Raises UsageError unless there is nothing if a page is to be written, or a page that sensorbench wrote."""
    if page.is_dir():
        raise UsageError(f"{page} is a folder; expected the name of a file")
    if page.exists() and page.stat().st_size and not _is_our_page(page):
        raise UsageError(f"{page}: sensorbench did not write this file and does not overwrite it; move it, or name another place")


def check_summary_is_free(folder: Path, kind: str) -> None:
    """Raises UsageError unless a summary of this kind and its page can be written into a folder: what is there of them is ours."""
    summary = folder / "summary.json"
    if summary.exists() and _kind_of(summary) != kind:
        raise UsageError(
            f"{summary}: sensorbench did not write this file and does not overwrite it; move it, or name another place"
        )
    check_page_is_free(folder / REPORT_FILE)


def check_site_is_free(folder: Path, *, replace: bool) -> None:
    """Raises UsageError unless a folder for a site is empty or not there, or, with `replace`, has a site that sensorbench wrote."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not folder.is_dir() or _kind_of(folder / SITE_FILE) != SITE_KIND:
        raise UsageError(f"{folder}: sensorbench did not write this and does not overwrite it; name another folder with --out")
    if not replace:
        raise UsageError(f"{folder}: a site is there already; overwrite it with --replace, or name another folder with --out")


def is_summary_of(folder: Path, kind: str) -> bool:
    """Whether a folder has a summary of this kind that sensorbench wrote."""
    return _kind_of(folder / "summary.json") == kind


def remove_results(folder: Path) -> None:
    """Removes a folder below results, with all that sensorbench wrote into it. Raises UsageError, and removes nothing, when something
    else lies there.
    """
    if not folder.exists():
        return
    foreign = _foreign_in(folder)
    if foreign is not None:
        raise UsageError(
            f"{foreign}: sensorbench did not write it, and {folder} has to be removed to continue; move it elsewhere"
        )
    shutil.rmtree(folder)


def remove_if_empty(folder: Path) -> None:
    """Removes a folder unless something lies in it."""
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _foreign_in(folder: Path) -> Path | None:
    """The first thing in a folder of results that sensorbench did not put there."""
    for entry in sorted(folder.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            if entry.name == _DATA_FOLDER:
                found = _foreign_data_in(entry)
            elif _FOLDERS.fullmatch(entry.name) or folder.name in {"cells", "experiments"}:
                found = _foreign_in(entry)
            else:
                found = entry
            if found is not None:
                return found
        elif not (_CHARTS if folder.name == _CHARTS_FOLDER else _RESULTS).fullmatch(entry.name):
            return entry
    return None


def _foreign_data_in(data: Path) -> Path | None:
    """The first thing beside databases that is not called like one of the variants that the manifest names."""
    variants = _variants_of(data.parent / "manifest.json")
    return next((entry for entry in sorted(data.iterdir()) if not entry.name.startswith(variants)), None)


def _variants_of(manifest: Path) -> tuple[str, ...]:
    try:
        said = json.loads(manifest.read_text(encoding="utf-8"))
        # The last two are those of format 1.
        listed = [*said.get("variants", []), *said.get("settings", [])]
        return tuple(entry["id"] for entry in [*listed, *(said[key] for key in ("variant", "setting") if key in said)])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ()


def _is_our_page(page: Path) -> bool:
    with page.open("rb") as file:
        return _OUR_TITLE in file.read(_FIRST_BYTES).decode("utf-8", errors="replace")


def _kind_of(summary: Path) -> str | None:
    try:
        said = json.loads(summary.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return str(said["kind"]) if isinstance(said, dict) and "kind" in said else None
