"""Forged bundles: a bundle that somebody edited, who computed its summary and its checksums again."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sensorbench.app.bundle import summary_at
from sensorbench.bundles.make import summary_entry
from sensorbench.results.bundle import INDEX_FILE, RESULTS_PART, BundleIndex, listed, read_index, unpack, write_bundle
from sensorbench.results.manifest import now

Forge = Callable[[Path], None]


def forged(bundle: Path, folder: Path, forge: Forge, *, is_summarised: bool = True) -> Path:
    """A bundle in whose results something was changed, and all checksums; and its summary, unless that is what was changed."""
    unpacked, out = folder / "unpacked", folder / "forged.sbz"
    unpack(bundle, unpacked)
    forge(unpacked)
    if is_summarised:
        text = summary_at(unpacked / RESULTS_PART).model_dump_json()
        (unpacked / summary_entry(".")).write_text(text, encoding="utf-8")
    entries = {path.relative_to(unpacked).as_posix(): path for path in sorted(unpacked.rglob("*")) if path.is_file()}
    index = BundleIndex.model_validate_json(entries[INDEX_FILE].read_bytes())
    fixed = index.model_copy(update={"files": listed(entries)})
    write_bundle(out, {**entries, INDEX_FILE: fixed.model_dump_json().encode()})
    assert read_index(out).files != read_index(bundle).files, "nothing was changed"
    return out


def edit_json(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes a JSON file."""
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def runs_in(unpacked: Path, variant: str = "*") -> list[Path]:
    """The folders of the runs of a variant, or of all."""
    found = sorted(path.parent for path in unpacked.glob(f"{RESULTS_PART}/experiments/{variant}/run-*/manifest.json"))
    assert found
    return found


def set_column(path: Path, name: str, values: Any) -> None:
    """Rewrites a column of a Parquet file."""
    table = pq.read_table(path)
    place = table.schema.get_field_index(name)
    pq.write_table(table.set_column(place, name, pa.array(values, table.schema.field(name).type)), path)


def bundle_of(entries: Mapping[str, bytes], out: Path) -> Path:
    """A bundle of any entries, which its index lists."""
    # What a model refuses is to be refused when it is read.
    index = BundleIndex.model_construct(
        id="1",
        title="made up",
        results="comparison",
        created=now(),
        finished=None,
        version="1",
        bundled_by="1",
        with_operations=False,
        schema_files={},
        unverifiable=[],
        files=listed(entries),
    )
    write_bundle(out, {**entries, INDEX_FILE: index.model_dump_json().encode()})
    return out
