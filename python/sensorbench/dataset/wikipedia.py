"""Articles of Wikipedia, from dumps of any of its languages, or of any wiki that runs MediaWiki.

An article is a page of namespace 0 that does not redirect. The real sample in the package was made by `sensorbench data import
wikipedia` from the beginnings of five dumps; its README.md has the commands.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from sensorbench.dataset.compressed import first_bytes
from sensorbench.dataset.dataset import ARTICLE_SCHEMA, ARTICLES, Dataset, DatasetWriter, Description, RelationWriter
from sensorbench.dataset.mediawiki import ARTICLE_NAMESPACE, Dump, Page, looks_like_dump
from sensorbench.errors import UsageError
from sensorbench.progress import ProgressReporter, Task

NAME = "wikipedia"
SHIPPED_FOLDER = Path(__file__).parent / "wikipedia"
REDIRECTS = "redirects"

IMPORTED_SCHEMA = pa.schema([*ARTICLE_SCHEMA, pa.field("wiki", pa.string()), pa.field("page_id", pa.int64())])
REDIRECT_SCHEMA = pa.schema([("title", pa.string()), ("target", pa.string()), ("wiki", pa.string()), ("page_id", pa.int64())])
# Rows are written when they are as long as this together; what a row has beside its text counts as this much.
CHARACTERS_A_BATCH = 8 << 20
CHARACTERS_A_ROW = 100
PAGES_A_BLOCK = 1 << 16

DESCRIPTION = Description(
    name=NAME,
    title="Articles of Wikipedia",
    generated=False,
    source="dumps of MediaWiki, https://dumps.wikimedia.org",
    license=(
        "CC BY-SA 4.0 and GFDL, before June 2023 CC BY-SA 3.0 and GFDL, where the dump is Wikipedia's (https://dumps.wikimedia.org/legal.html); its "
        "authors are in the history of each page"
    ),
    how_made=(
        "Imported from MediaWiki dumps: an article is a page of namespace 0 that does not redirect, with the wikitext of its newest revision in the "
        "dump. Articles are numbered from 1 in the order of the files and of the pages in them."
    ),
)


@dataclass
class Counts:
    """What became of the pages of some dumps. `cut_pages`: begun where a dump was cut off, and left out."""

    pages: int = 0
    articles: int = 0
    redirects: int = 0
    other_namespaces: int = 0
    without_text: int = 0
    duplicates: int = 0
    cut_pages: int = 0
    truncated: bool = False
    truncated_files: list[str] = field(default_factory=list)

    def notes(self) -> list[str]:
        """What should be noted of them."""
        kept = f"{self.articles:,} are articles and {self.redirects:,} redirect (relation {REDIRECTS})"
        left_out = {
            "belong to other namespaces": self.other_namespaces,
            "have no text in the dump": self.without_text,
            "were there before, by wiki and page id": self.duplicates,
        }
        why = ", ".join(f"{count:,} {what}" for what, count in left_out.items() if count)
        notes = [f"Of {self.pages:,} pages {kept}" + (f"; left out: {why}." if why else ".")]
        if self.truncated:
            begun = f"; {self.cut_pages:,} pages that were begun there are left out" if self.cut_pages else ""
            notes.append(f"The dump is truncated: {', '.join(self.truncated_files)} ends before its end{begun}.")
        return notes


class _Seen:
    """Pages that were there: a bit for each, in blocks of numbers that follow one another."""

    def __init__(self) -> None:
        self._blocks: dict[tuple[str, int], bytearray] = {}

    def add(self, wiki: str, page_id: int) -> bool:
        """Whether the page is a new one."""
        block, place = divmod(page_id, PAGES_A_BLOCK)
        bits = self._blocks.setdefault((wiki, block), bytearray(PAGES_A_BLOCK // 8))
        is_new = not bits[place // 8] >> place % 8 & 1
        bits[place // 8] |= 1 << place % 8
        return is_new


class _Rows:
    """Rows on their way into a relation, some at a time."""

    def __init__(self, relation: RelationWriter, schema: pa.Schema) -> None:
        self._relation = relation
        self._schema = schema
        self._rows: list[tuple[int | str, ...]] = []
        self._characters = 0

    def add(self, row: tuple[int | str, ...], characters: int) -> None:
        """Adds a row with about this many characters."""
        self._rows.append(row)
        self._characters += characters
        if self._characters >= CHARACTERS_A_BATCH:
            self.flush()

    def flush(self) -> None:
        """Writes the rows that were added."""
        if self._rows:
            columns = zip(*self._rows, strict=True)
            arrays = [pa.array(values, column.type) for values, column in zip(columns, self._schema, strict=True)]
            self._relation.write(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._rows, self._characters = [], 0


class _Import:
    """An import under way: where pages go, and what was counted."""

    def __init__(self, articles: _Rows, redirects: _Rows) -> None:
        self.counts = Counts()
        self.sites: dict[str, None] = {}
        self._articles = articles
        self._redirects = redirects
        self._seen = _Seen()

    def take_all(self, files: list[Path], task: Task) -> None:
        """Takes over the pages of all files."""
        read_bytes = 0
        for file in files:
            dump = Dump(file)
            for page in dump.pages():
                self._take(dump.wiki, page)
                task.advance_to(read_bytes + dump.read_bytes, f"{self.counts.articles:,} articles")
            read_bytes += dump.read_bytes
            self.sites[dump.site] = None
            self.counts.cut_pages += dump.is_in_page
            if dump.is_truncated:
                self.counts.truncated = True
                self.counts.truncated_files.append(file.name)
        self._articles.flush()
        self._redirects.flush()

    def _take(self, wiki: str, page: Page) -> None:
        counts = self.counts
        counts.pages += 1
        if page.namespace != ARTICLE_NAMESPACE:
            counts.other_namespaces += 1
        elif not self._seen.add(wiki, page.page_id):
            counts.duplicates += 1
        elif page.redirects_to is not None:
            counts.redirects += 1
            self._redirects.add((page.title, page.redirects_to, wiki, page.page_id), CHARACTERS_A_ROW)
        elif page.text is None:
            counts.without_text += 1
        else:
            counts.articles += 1
            row = (counts.articles, page.title, page.text, wiki, page.page_id)
            self._articles.add(row, len(page.text) + CHARACTERS_A_ROW)


def recognises(file: Path) -> bool:
    """Whether a file is a dump, compressed or not."""
    return looks_like_dump(first_bytes(file))


def import_files(files: list[Path], out: Path, *, reporter: ProgressReporter) -> Dataset:
    """Imports dumps, one after the other. Of pages that are in several, the first stays, because nothing is read twice."""
    missing = next((file for file in files if not file.is_file()), None)
    if missing is not None:
        raise UsageError(f"{missing}: no such file; expected MediaWiki dumps (pages-articles, as .xml, .xml.bz2 or .xml.xz)")
    writer = DatasetWriter(out)
    with writer.writing(REDIRECTS, REDIRECT_SCHEMA) as redirects, writer.writing(ARTICLES, IMPORTED_SCHEMA) as articles:
        found = _Import(_Rows(articles, IMPORTED_SCHEMA), _Rows(redirects, REDIRECT_SCHEMA))
        with reporter.task("importing wikipedia", total=sum(file.stat().st_size for file in files)) as task:
            found.take_all(files, task)
            task.end(f"{found.counts.articles:,} articles, {found.counts.redirects:,} redirects")
    if found.counts.articles == 0:
        stub = "; dumps whose name has `stub` hold no texts" if found.counts.without_text else ""
        raise UsageError(f"the files hold no article at all ({found.counts.pages:,} pages); nothing was written{stub}")
    named = ", ".join(file.name for file in files)
    sites = ", ".join(unquote(site) for site in found.sites if site) or "a wiki that is not named"
    changes = {"source": f"{named}: of {sites}", "notes": found.counts.notes(), "counted": asdict(found.counts)}
    return writer.finish(DESCRIPTION.model_copy(update=changes))
