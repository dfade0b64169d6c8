"""Result bundles: one file with the results of a benchmark, what they were made of, and the SHA-256 of each part.

A bundle is a zip file. `bundle.json` says what it is of and lists all other entries; the order of entries, their times and their compression
are fixed, so that equal results make equal bundles. A bundle comes from somebody else: nothing of it is trusted before it was checked here.
"""

import hashlib
import io
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from sensorbench.errors import UsageError, problem_text
from sensorbench.results.files import whole_file

# What an entry holds, or the file that holds it.
Content: TypeAlias = bytes | Path

BUNDLE_SUFFIX = ".sbz"
INDEX_FILE = "bundle.json"
SIGNATURE_FILE = "bundle.json.sig"
CRATE_FILE = "ro-crate-metadata.json"
RESULTS_PART = "results"
# What is not listed in the index: the index itself, and what signs it.
_UNLISTED = {INDEX_FILE, SIGNATURE_FILE}

MAX_ENTRIES = 50_000
MAX_BYTES = 4 << 30
# Results are compressed to a tenth, rarely to a hundredth; a bomb to a thousandth.
MAX_RATIO = 300
_SMALL_BYTES = 1 << 20
_EPOCH = (1980, 1, 1, 0, 0, 0)
_AT_ONCE = 1 << 20


class UnreadableBundleError(UsageError):
    """A file that is not a bundle, or one that is not safe to open."""


class BundleFile(BaseModel):
    """An entry of a bundle."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str
    bytes: int
    sha256: str


class BundleIndex(BaseModel):
    """`bundle.json`: what a bundle is of, and all that is in it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    kind: Literal["sensorbench-bundle"] = "sensorbench-bundle"
    id: str = Field(description="The id of the results folder.")
    title: str
    results: str = Field(description="The kind of the results.")
    created: datetime = Field(description="When the measurement began.")
    finished: datetime | None
    version: str = Field(description="The version of sensorbench that measured.")
    bundled_by: str = Field(description="The version of sensorbench that made the bundle.")
    with_operations: bool = Field(description="Whether the logs of operations are in it.")
    answers_without_values: int = Field(
        0, description="Answers of which only rows and hash are in it, and not the values that are compared within a tolerance."
    )
    register_operations_left_out: int = Field(
        0,
        description="Operations on registers whose histories are left out, so that what their clients saw cannot be computed again.",
    )
    schema_files: dict[str, str] = Field(description="The entry of each variant's schema file, by part and variant.")
    unverifiable: list[str] = Field(
        description="Figures of the summaries that do not follow from what is in the bundle, because logs of operations are left out."
    )
    files: list[BundleFile]

    @model_validator(mode="after")
    def _stays_inside(self) -> "BundleIndex":
        names = {file.path for file in self.files}
        if outside := sorted(name for name in names if not _is_inside(name)):
            raise ValueError(f"{outside[0]!r} is not a path inside a bundle")
        if unlisted := sorted(set(self.schema_files.values()) - names):
            raise ValueError(f"the schema file {unlisted[0]!r} is not among its files")
        return self


def check_bundle_is_free(path: Path, *, replace: bool) -> None:
    """Raises UsageError unless there is nothing if a bundle is to be written, or, with `replace`, a bundle that sensorbench wrote."""
    if path.suffix != BUNDLE_SUFFIX:
        raise UsageError(f"--out {path}: expected a file that ends with {BUNDLE_SUFFIX}")
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError(f"--out {path}: expected the name of a file in an existing folder")
    if not path.exists() and not path.is_symlink():
        return
    try:
        read_index(path)
    except UnreadableBundleError:
        raise UsageError(
            f"{path}: sensorbench did not write this file and does not overwrite it; name another with --out"
        ) from None
    if not replace:
        raise UsageError(f"{path}: a bundle is there already; overwrite it with --replace, or name another file with --out")


def write_bundle(path: Path, entries: Mapping[str, Content]) -> None:
    """Writes a bundle, all of it or nothing; equal entries make equal bytes.

    Args:
        path: the file.
        entries: contents by path inside the bundle, or the files that have them; one of them is the index.

    """
    with whole_file(path) as unfinished, zipfile.ZipFile(unfinished, "w", compresslevel=9) as archive:
        for name in sorted(entries, key=lambda name: (name != INDEX_FILE, name)):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system = 3
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            # Also Parquet files, whose footers are most of many short runs.
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as into, _opened_content(entries[name]) as content:
                shutil.copyfileobj(content, into, _AT_ONCE)


def listed(entries: Mapping[str, Content]) -> list[BundleFile]:
    """The entries of a bundle as its index has them."""
    return [_listed(name, content) for name, content in sorted(entries.items()) if name not in _UNLISTED]


def _listed(name: str, content: Content) -> BundleFile:
    with _opened_content(content) as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return BundleFile(path=name, bytes=file.seek(0, io.SEEK_END), sha256=sha256)


def _opened_content(content: Content) -> io.BytesIO | io.BufferedReader:
    return content.open("rb") if isinstance(content, Path) else io.BytesIO(content)


def read_index(path: Path) -> BundleIndex:
    """What a bundle says of itself. Raises UnreadableBundleError."""
    return _as_index(path, read_entry(path, INDEX_FILE))


def read_entry(path: Path, name: str) -> bytes:
    """The content of one entry. Raises UnreadableBundleError if there is none, or the file is none that can be opened safely."""
    with _opened(path) as archive:
        if name not in archive.namelist():
            raise UnreadableBundleError(f"{path}: it has no {name}, so it is not a bundle of sensorbench")
        return b"".join(_parts(path, archive, archive.getinfo(name)))


def is_signed(path: Path) -> bool:
    """Whether a bundle has a signature, right or wrong. Raises UnreadableBundleError."""
    with _opened(path) as archive:
        return SIGNATURE_FILE in archive.namelist()


def unpack(path: Path, folder: Path) -> tuple[BundleIndex, list[str]]:
    """Unpacks a bundle into a folder.

    Args:
        path: the bundle.
        folder: an empty folder.

    Returns:
        The index, and what is wrong with the entries by it.

    Raises:
        UnreadableBundleError: for a file that is not a bundle, or is not safe to unpack.

    """
    places: dict[str, Content] = {}
    with _opened(path) as archive:
        for entry in archive.infolist():
            place = folder / entry.filename
            places[entry.filename] = place
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                with place.open("xb") as into:
                    for part in _parts(path, archive, entry):
                        into.write(part)
            except OSError as error:
                raise UnreadableBundleError(f"{path}: {entry.filename} cannot be unpacked ({error.strerror or error})") from None
    if INDEX_FILE not in places:
        raise UnreadableBundleError(f"{path}: it has no {INDEX_FILE}, so it is not a bundle of sensorbench")
    index = _as_index(path, (folder / INDEX_FILE).read_bytes())
    return index, _wrong_files(index, listed(places))


def _wrong_files(index: BundleIndex, entries: list[BundleFile]) -> list[str]:
    known, found = {file.path: file for file in index.files}, {file.path: file for file in entries}
    return [
        *(f"{name}: the index lists it, but it is missing" for name in sorted(known.keys() - found.keys())),
        *(f"{name}: the index does not list it" for name in sorted(found.keys() - known.keys())),
        *(
            f"{name}: its SHA-256 is {found[name].sha256[:12]}…, the index has {known[name].sha256[:12]}…"
            for name in sorted(known.keys() & found.keys())
            if found[name].sha256 != known[name].sha256
        ),
    ]


def _as_index(path: Path, content: bytes) -> BundleIndex:
    try:
        return BundleIndex.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "it"
        raise UnreadableBundleError(f"{path}: {INDEX_FILE}: {where}: {problem_text(first)}") from None


def _opened(path: Path) -> zipfile.ZipFile:
    """A zip file whose entries are safe to read. Raises UnreadableBundleError."""
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise UnreadableBundleError(
            f"{path}: it cannot be read as a bundle ({error}); expected a file of `sensorbench bundle`"
        ) from None
    try:
        _check_entries(path, archive.infolist())
    except UnreadableBundleError:
        archive.close()
        raise
    return archive


def _check_entries(path: Path, entries: list[zipfile.ZipInfo]) -> None:
    if len(entries) > MAX_ENTRIES:
        raise UnreadableBundleError(f"{path}: it has {len(entries):,} entries; at most {MAX_ENTRIES:,} are read")
    names = [entry.filename for entry in entries]
    if len(names) != len(set(names)):
        raise UnreadableBundleError(f"{path}: it has two entries of one name")
    for entry in entries:
        if not _is_inside(entry.orig_filename) or not _is_inside(entry.filename) or entry.is_dir():
            raise UnreadableBundleError(f"{path}: {entry.filename!r} is not a path inside a bundle")
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise UnreadableBundleError(f"{path}: {entry.filename!r} is a link")
        if entry.file_size > _SMALL_BYTES and entry.file_size > MAX_RATIO * max(1, entry.compress_size):
            raise UnreadableBundleError(f"{path}: {entry.filename!r} grows more than {MAX_RATIO}-fold when it is unpacked")
    if (total := sum(entry.file_size for entry in entries)) > MAX_BYTES:
        raise UnreadableBundleError(f"{path}: it would take {total:,} bytes unpacked; at most {MAX_BYTES:,} are read")


def _is_inside(name: str) -> bool:
    """Whether the name of an entry stays inside the folder that it is unpacked into, on any system."""
    parts = name.split("/")
    return not ({"", ".", ".."} & set(parts) or any(character in name for character in "\\:\0"))


def _parts(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    """The content of an entry in parts, and no more of it than the entry says to have. Raises UnreadableBundleError."""
    found = 0
    try:
        with archive.open(entry) as file:
            while part := file.read(_AT_ONCE):
                found += len(part)
                if found > entry.file_size:
                    break
                yield part
    except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, EOFError) as error:
        raise UnreadableBundleError(f"{path}: {entry.filename} cannot be read ({error})") from None
    if found != entry.file_size:
        raise UnreadableBundleError(f"{path}: {entry.filename} is not as long as the file says")
