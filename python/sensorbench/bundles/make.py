"""Making a bundle of a results folder."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sensorbench import __version__
from sensorbench.bundles.contents import comparison_parts, contents_of, without_secrets
from sensorbench.bundles.crate import crate_of
from sensorbench.bundles.figures import differences
from sensorbench.bundles.signature import sign
from sensorbench.results.bundle import (
    CRATE_FILE,
    INDEX_FILE,
    RESULTS_PART,
    SIGNATURE_FILE,
    BundleIndex,
    Content,
    listed,
    write_bundle,
)
from sensorbench.results.summary.envelope import Summary
from sensorbench.results.writer import SUMMARY_FILE

# Kinds whose figures do not all follow from histograms, sums and counts: what a tool prints of its queries is summed up from logs.
_NEEDS_LOGS = {"cassandra-stress", "tsbs"}
# The summary of a folder of results, recomputed.
Summarise = Callable[[Path], Summary[Any]]


@dataclass(frozen=True)
class BundleHead:
    """What a bundle says of results besides what is in them; the `id` of several works that are compared is that of the first."""

    id: str
    title: str
    kind: str
    created: datetime
    finished: datetime | None
    version: str


def make_bundle(
    folder: Path,
    out: Path,
    head: BundleHead,
    summarise: Summarise,
    *,
    with_operations: bool = False,
    key: Path | None = None,
) -> BundleIndex:
    """Writes a bundle of a results folder.

    Args:
        folder: of the results.
        out: the file; what lies there is overwritten.
        head: what is said of the results.
        summarise: gives the summary of a folder of results of any kind.
        with_operations: whether logs of operations go in, and all values of answers, also of kinds whose figures follow without them; those of others
            always do.
        key: an SSH key that signs it.

    Returns:
        The index.

    Raises:
        UsageError: a schema file was changed since it was run.
        DamagedResultsError: the results are damaged.

    """
    with_operations = with_operations or head.kind in _NEEDS_LOGS
    with tempfile.TemporaryDirectory(prefix="sensorbench-bundle-") as work:
        contents = contents_of(folder, Path(work) / "made", with_operations=with_operations)
        entries = contents.entries
        # The summary of a series is computed of those of its parts.
        parts = [part for part in comparison_parts(folder) if part != "."]
        summaries = {place: _without_secrets(summarise(folder / place)) for place in [*parts, "."]}
        for place, summary in summaries.items():
            entries[summary_entry(place)] = (summary.model_dump_json(indent=1) + "\n").encode()
        index = BundleIndex(
            id=head.id,
            title=head.title,
            results=head.kind,
            created=head.created,
            finished=head.finished,
            version=head.version,
            bundled_by=__version__,
            with_operations=with_operations,
            answers_without_values=contents.answers_without_values,
            register_operations_left_out=contents.register_operations_left_out,
            schema_files=contents.schema_files,
            unverifiable=_unverifiable(entries, summaries, summarise, Path(work) / "unpacked"),
            files=listed(entries),
        )
        entries[CRATE_FILE] = crate_of(index, summaries["."])
        index = index.model_copy(update={"files": listed(entries)})
        text = (index.model_dump_json(indent=1) + "\n").encode()
        entries[INDEX_FILE] = text
        if key is not None:
            entries[SIGNATURE_FILE] = sign(text, key)
        write_bundle(out, entries)
    return index


def _without_secrets(summary: Summary[Any]) -> Summary[Any]:
    return type(summary).model_validate_json(without_secrets(summary.model_dump_json()))


def summary_entry(part: str) -> str:
    """The entry of the summary of a part; `.` for the whole."""
    return "/".join(filter(None, [RESULTS_PART, part.strip("."), SUMMARY_FILE]))


def _unverifiable(
    entries: dict[str, Content], summaries: dict[str, Summary[Any]], summarise: Summarise, folder: Path
) -> list[str]:
    """The figures that come out otherwise from what is in the bundle than from all that was recorded."""
    for name, content in entries.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            place.symlink_to(content.resolve())
        else:
            place.write_bytes(content)
    results = folder / RESULTS_PART
    return [
        "/".join(filter(None, [place.strip("."), difference.path]))
        for place, summary in summaries.items()
        for difference in differences(summary, summarise(results / place))
    ]
