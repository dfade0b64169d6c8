"""What pages state of evidence: tables and single figures, generated from the bundles that exist, and a check that nothing else is stated.

A page has its tables between `<!-- evidence: STUDY -->` (`all` in README.md) and `<!-- end of evidence -->`. A figure in a sentence stands between
`<!-- figure: BUNDLE PATH -->`, where PATH is that of the summary as `sensorbench verify` names it, and `<!-- end of figure -->`.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docsite.evidence.entries import (
    FOLDER,
    PAGES,
    README,
    AllMade,
    Entries,
    bundle_files,
    read_entries,
    read_made,
)
from docsite.markdown import code, table
from sensorbench.advisor import EvidenceBundle, evidence_text
from sensorbench.advisor.source import EVIDENCE_FILE
from sensorbench.app.evidence import read_evidence_bundle
from sensorbench.bundles.figures import figures_of
from sensorbench.errors import UsageError
from sensorbench.report import formatting
from sensorbench.results.bundle import RESULTS_PART, BundleIndex, read_entry, read_index
from sensorbench.results.elasticity import STUDY_FILE, ElasticityStudyPlan
from sensorbench.results.files import write_text
from sensorbench.results.stored import DamagedResultsError
from sensorbench.results.summary.claims import VERDICTS, JudgedClaim, counts_by_verdict, verdict_counts
from sensorbench.results.summary.comparison import ComparisonSummary, StudySection
from sensorbench.results.summary.elasticity import ElasticityComparisonSummary
from sensorbench.results.summary.envelope import Summary
from sensorbench.results.summary.factors import FactorsSummary
from sensorbench.results.summary.kinds import SUMMARY_BY_KIND
from sensorbench.results.summary.mapreduce import MapReduceSummary
from sensorbench.results.summary.series import SeriesSummary
from sensorbench.results.writer import SUMMARY_FILE
from sensorbench.studies import listed_studies

HEADING = "## Evidence"
NOT_TESTED = "not tested"
_TABLES = re.compile(r"(?P<begin><!-- evidence: (?P<name>[\w-]+) -->\n)(?P<text>.*?)(?P<end><!-- end of evidence -->)", re.DOTALL)
_FIGURE = re.compile(
    r"(?P<begin><!-- figure: (?P<bundle>[\w.-]+) (?P<path>.+?) -->)(?P<text>[^<]*)(?P<end><!-- end of figure -->)"
)
_SECTION = re.compile(rf"^{HEADING}\n.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)
# A cell of a table in a section of a study: `result.sections[TITLE].rows[WORD | WORD].COLUMN`, of the row that begins with these words.
_CELL = re.compile(r"result\.sections\[(?P<section>[^]]+)\]\.rows\[(?P<row>[^]]+)\]\.(?P<column>.+)")
# Names such as IOT-4 and versions in code are not figures; nor are links.
_NO_PROSE = re.compile(r"```.*?```|`[^`\n]*`|\]\([^)]*\)|<!--.*?-->", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.-])\d[\d,.]*(?:e[+-]?\d+)?(?![\w-])")


@dataclass(frozen=True)
class Published:
    """A bundle that exists, with its summary."""

    name: str
    study: str
    size: int
    index: BundleIndex
    summary: Summary[Any]
    # How much data there was.
    scale: str

    @property
    def verdicts(self) -> list[str]:
        """How many claims have each of `VERDICTS`; empty if none has it."""
        counts = counts_by_verdict(self.summary.claims)
        return [f"{counts[word]}" if counts[word] else "" for word in VERDICTS]


def published(folder: Path = FOLDER, entries: Entries | None = None) -> list[Published]:
    """The bundles that exist. Raises UsageError for one that the file of entries does not have, or that another command made."""
    known = entries or read_entries()
    found = []
    for name, file in bundle_files(folder).items():
        if name not in known.bundles:
            raise UsageError(f"{file}: evidence.toml has no entry {name!r}; name the command that made it, or remove the bundle")
        index, entry = read_index(file), known.bundles[name]
        summary = _summary(file, index)
        if not entry.is_of(summary.command):
            raise UsageError(f"{file}: it was made by {' '.join(summary.command)!r}; evidence.toml has {entry.command!r}")
        found.append(Published(name, entry.study, file.stat().st_size, index, summary, _scale(file, summary)))
    return found


def _summary(file: Path, index: BundleIndex) -> Summary[Any]:
    model = SUMMARY_BY_KIND.get(index.results)
    if model is None:
        raise DamagedResultsError(file, f"{index.results!r} is not a kind of results")
    summary: Summary[Any] = model.model_validate_json(read_entry(file, f"{RESULTS_PART}/{SUMMARY_FILE}"))
    return summary


def study_tables(study: str, bundles: Sequence[Published], made: AllMade, entries: Entries) -> str:
    """What the page of a study says of its evidence."""
    own = [bundle for bundle in bundles if bundle.study == study]
    lacking = entries.lacking.get(study, "")
    if not own:
        return f"**No evidence yet.** {lacking or 'Nothing is planned.'}\n\n{_planned(study, bundles, entries)}"
    rows = [
        [
            code(bundle.name),
            bundle.index.created.date().isoformat(),
            bundle.scale,
            _machine(bundle.summary),
            _versions(bundle),
            _load(bundle.name, made),
            formatting.size(bundle.size),
        ]
        for bundle in own
    ]
    text = table(["bundle", "measured", "scale", "machine", "versions", "time and other load", "size"], rows)
    for bundle in own:
        text += f"\n{code(bundle.name)}, by `make evidence NAME={bundle.name}`:\n\n    sensorbench {entries.bundles[bundle.name].command}\n"
        claims = bundle.summary.claims
        if claims:
            text += f"\nOf its {len(claims)} claims: {verdict_counts(claims)}.\n"
            text += _judged(claims) + _untested(study, claims)
    if lacking:
        text += f"\n**Not there yet.** {lacking}\n"
    return text + f"\n{_planned(study, bundles, entries)}"


def _judged(claims: Sequence[JudgedClaim]) -> str:
    """The claims that are about what was measured, whatever came out."""
    rows = [
        [claim.id, claim.text, claim.published, _measured(claim), claim.verdict, _why(claim)]
        for claim in claims
        if claim.verdict != NOT_TESTED
    ]
    return f"\n{table(['claim', 'finding', 'published', 'measured', 'verdict', 'why'], rows)}" if rows else ""


def _measured(claim: JudgedClaim) -> str:
    return formatting.significant(claim.measured.value) if claim.measured and claim.measured.value is not None else ""


def _untested(study: str, claims: Sequence[JudgedClaim]) -> str:
    """The other claims, by what they lack: many lack the same."""
    by_reason: dict[str, list[str]] = {}
    for claim in claims:
        if claim.verdict == NOT_TESTED:
            by_reason.setdefault(_why(claim), []).append(claim.id)
    lines = "".join(f"- {', '.join(ids)}: {reason}\n" for reason, ids in by_reason.items())
    return f"\nNot tested (`sensorbench study show {study}` has their findings):\n\n{lines}" if lines else ""


def _why(claim: JudgedClaim) -> str:
    """Why a claim has its verdict; over several datasets, what the last one says of those that have the same: it is the largest."""
    alike = [of_one.reason for of_one in claim.of_each.values() if of_one.verdict == claim.verdict]
    return claim.reason or (alike[-1] if alike else "")


def _planned(study: str, bundles: Sequence[Published], entries: Entries) -> str:
    """The entries of a study that have no bundle."""
    there = {bundle.name for bundle in bundles}
    rows = [
        [code(name), code(f"sensorbench {entry.command}"), entry.machine, entry.budget]
        for name, entry in entries.bundles.items()
        if entry.study == study and name not in there
    ]
    return f"Planned:\n\n{table(['bundle', 'command', 'machine', 'time'], rows)}\n" if rows else ""


def overview(bundles: Sequence[Published], entries: Entries) -> str:
    """The table of README.md: each study with its bundles and how many claims have which verdict there, or why it has none."""
    titles = {study.name: study.title for study in listed_studies()}
    rows = []
    for study in dict.fromkeys([*(entry.study for entry in entries.bundles.values()), *entries.lacking]):
        own = [
            [f"[{bundle.name}](evidence/{bundle.name}.sbz)", bundle.scale, _date(bundle), *bundle.verdicts]
            for bundle in bundles
            if bundle.study == study
        ]
        none = [f"none yet. {entries.lacking.get(study, '')}".strip(), "", "", *("" for _ in VERDICTS)]
        first, *others = own or [none]
        rows += [[f"[{titles.get(study, study)}](docs/studies/{study}.md)", *first], *(["", *row] for row in others)]
    return table(["study", "bundle", "scale", "measured", *VERDICTS], rows)


def _date(bundle: Published) -> str:
    return bundle.index.created.date().isoformat()


def _scale(file: Path, summary: Summary[Any]) -> str:
    """How much data there was: the scale, or of a series the readings of its parts; empty for kinds that do not say."""
    if isinstance(summary, SeriesSummary):
        *others, last = dict.fromkeys(f"{part.readings:,}" for part in summary.result.parts.values())
        return f"{', '.join(others)} and {last} readings" if others else f"{last} readings"
    if isinstance(summary, ComparisonSummary):
        return f"{summary.result.dataset.get('scale', 1.0):g}"
    if isinstance(summary, FactorsSummary):
        return f"{summary.result.scale:g}"
    if isinstance(summary, ElasticityComparisonSummary):
        plan = ElasticityStudyPlan.model_validate_json(read_entry(file, f"{RESULTS_PART}/{STUDY_FILE}"))
        return f"{plan.scale:g}"
    return f"{summary.result.dataset.scale:g}" if isinstance(summary, MapReduceSummary) else ""


def _machine(summary: Summary[Any]) -> str:
    environment = summary.environment
    memory = environment.get("memory_bytes")
    of_memory = f", {formatting.size(memory)}" if memory else ""
    return f"{environment.get('processors')} × {environment.get('processor')}{of_memory}"


def _versions(bundle: Published) -> str:
    databases = sorted({variant.database for variant in bundle.summary.variants})
    return f"sensorbench {bundle.index.version}; {', '.join(databases)}" if databases else f"sensorbench {bundle.index.version}"


def _load(name: str, made: AllMade) -> str:
    how = made.bundles.get(name)
    if how is None:
        return "not recorded"
    others = "not recorded" if how.others_cpu_s is None else f"{how.others_cpu_s / (how.took_s * how.cpus):.1%}"
    return f"{how.took_s:.0f} s on {how.cpus} CPUs; load average before: {how.load_before:.2f}; CPU of others: {others}"


def figure_text(bundles: Sequence[Published], name: str, path: str) -> str:
    """A figure of a bundle as pages show it. Raises UsageError if no bundle has it."""
    bundle = next((bundle for bundle in bundles if bundle.name == name), None)
    if bundle is None:
        raise UsageError(f"figure {name} {path}: there is no bundle {name}")
    if cell := _CELL.fullmatch(path):
        return _cell_text(bundle.summary.result.sections, f"figure {name} {path}", cell)
    values = figures_of(bundle.summary)
    value = values.get(path)
    if value is None:
        near = [known for known in values if known.rpartition(".")[2] == path.rpartition(".")[2]][:3]
        raise UsageError(
            f"figure {name} {path}: the bundle has no such figure; expected for example {', '.join(near) or 'result.…'}"
        )
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if path.endswith("bytes"):
        return formatting.size(value)
    in_seconds = any(part.endswith("_s") and not part.endswith("per_s") for part in re.split(r"[.\[\]]", path))
    return formatting.duration(value) if in_seconds else formatting.significant(value)


def _cell_text(sections: Sequence[StudySection], figure: str, cell: re.Match[str]) -> str:
    """A cell as its column has it. Raises UsageError unless there is one such cell, with a value."""
    section = next((section for section in sections if section.title == cell["section"]), None)
    if section is None:
        raise UsageError(f"{figure}: expected one of the sections {'; '.join(section.title for section in sections)}")
    titles = [column.title for column in section.columns]
    if cell["column"] not in titles:
        raise UsageError(f"{figure}: expected one of the columns {'; '.join(titles)}")
    words = cell["row"].split(" | ")
    rows = [row for row in section.rows if [_word(value) for value in row[: len(words)]] == words]
    if len(rows) != 1:
        raise UsageError(
            f"{figure}: {len(rows)} rows begin like this; expected one: name more of its first cells, with | between them"
        )
    place = titles.index(cell["column"])
    if rows[0][place] is None:
        raise UsageError(f"{figure}: this cell is empty")
    return formatting.of_kind(rows[0][place], section.columns[place].kind)


def _word(value: object) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def with_evidence(text: str, bundles: Sequence[Published], made: AllMade, entries: Entries) -> str:
    """A page with its tables and figures as the bundles have them. Raises UsageError for a figure that none has."""

    def tables(found: re.Match[str]) -> str:
        own = overview(bundles, entries) if found["name"] == "all" else study_tables(found["name"], bundles, made, entries)
        return f"{found['begin']}\n{own.strip()}\n\n{found['end']}"

    text = _TABLES.sub(tables, text)
    return _FIGURE.sub(
        lambda found: f"{found['begin']}{figure_text(bundles, found['bundle'], found['path'])}{found['end']}", text
    )


def violations(text: str, bundles: Sequence[Published], made: AllMade, entries: Entries) -> list[str]:
    """What a page states of evidence that no bundle has: tables and figures that differ, and numbers in its section that name no bundle."""
    found: list[str] = []
    try:
        if with_evidence(text, bundles, made, entries) != text:
            found.append("its tables or figures are not those of the bundles; write them again by `make evidence-pages`")
    except UsageError as error:
        found.append(str(error))
    for section in _SECTION.findall(text):
        prose = _NO_PROSE.sub(" ", _FIGURE.sub(" ", _TABLES.sub(" ", section.removeprefix(HEADING))))
        found += [
            f"{number.group()!r} is a figure that no bundle is named for; put it as <!-- figure: BUNDLE PATH -->"
            for number in _NUMBER.finditer(prose)
        ]
    return found


def pages() -> list[Path]:
    """The pages that state evidence."""
    return [*sorted(PAGES.glob("*.md")), README]


def advice(entries: Entries, folder: Path = FOLDER) -> str:
    """What recommendations go by: the file of the package, made of the bundles that are there for that."""
    found: Mapping[str, EvidenceBundle | None] = {
        name: read_evidence_bundle(file, name=name, is_own=False)
        for name, file in bundle_files(folder).items()
        if name not in entries.bundles or entries.bundles[name].no_advice is None
    }
    return evidence_text([bundle for bundle in found.values() if bundle is not None])


def write_all() -> list[Path]:
    """Writes the pages, and what recommendations go by; returns the files that changed."""
    bundles, made, entries = published(), read_made(), read_entries()
    texts = {page: with_evidence(page.read_text(encoding="utf-8"), bundles, made, entries) for page in pages()}
    texts[EVIDENCE_FILE] = advice(entries)
    changed = [path for path, text in texts.items() if path.read_text(encoding="utf-8") != text]
    for path in changed:
        write_text(path, texts[path])
    return changed


def main() -> int:
    """Writes all; prints which files changed."""
    try:
        for path in write_all():
            print(path)
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
