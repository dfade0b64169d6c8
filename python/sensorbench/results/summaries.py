"""Which databases were measured below a folder: by the summaries there, of any kind."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sensorbench.errors import UsageError
from sensorbench.paths import REPORT_FILE
from sensorbench.results.stored import read_json
from sensorbench.results.writer import EXPERIMENTS_FOLDER, SUMMARY_FILE


@dataclass(frozen=True)
class Measured:
    """A work and the databases that it measured; its report, if there is one."""

    title: str
    kind: str
    created: str
    databases: tuple[str, ...]
    folder: Path
    report: Path | None


def measured_below(folder: Path) -> list[Measured]:
    """The works below a folder, it included, by the places of their folders. Raises UsageError if there are none."""
    files = sorted(file for file in folder.rglob(SUMMARY_FILE) if EXPERIMENTS_FOLDER not in file.relative_to(folder).parts)
    found = [work for work in map(_work, files) if work.databases]
    if not found:
        raise UsageError(f"{folder}: no results are there ({SUMMARY_FILE} of a work that has measured a database)")
    return found


def _work(file: Path) -> Measured:
    summary = read_json(file)
    report = file.parent / REPORT_FILE
    return Measured(
        title=summary.get("title", file.parent.name),
        kind=summary.get("kind", ""),
        created=summary.get("created", ""),
        databases=tuple(dict.fromkeys(_databases(summary))),
        folder=file.parent,
        report=report if report.exists() else None,
    )


def _databases(summary: dict[str, Any]) -> list[str]:
    """Of a comparison, those of its variants; of a load, a search or a transition, that of its one; of a study of factors, its target.
    A series has none of its own: its parts do.
    """
    variants = [*summary.get("variants", ()), *summary.get("settings", ()), summary.get("setting")]
    named = [variant["database"] for variant in variants if isinstance(variant, dict) and "database" in variant]
    return (
        named
        if named or summary.get("kind") != "factors"
        else [(summary.get("target") or summary["result"]["target"]).partition("?")[0]]
    )
