"""Pages of MediaWiki's XML dumps (export formats 0.3 to 0.11), as a stream: however long a dump is, memory holds a few pages.

A dump that ends too early is read as far as it goes. What no dump has is refused rather than handled: document types, and with
them every entity of a file's own; names and texts that are longer than a wiki lets them be.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.parsers import expat

from sensorbench.dataset.compressed import ByteStream
from sensorbench.errors import UsageError

ROOT = "mediawiki"
ARTICLE_NAMESPACE = 0
# MediaWiki takes 2 MiB by default; some wikis allow more.
MAX_CHARACTERS = 16 << 20
MAX_DEPTH = 64
# A tag is at most as long as this, with all of its attributes.
MAX_TAG_BYTES = 4 << 20

# What is kept of a dump: elements by where they are.
_TITLE = (ROOT, "page", "title")
_NAMESPACE = (ROOT, "page", "ns")
_PAGE_ID = (ROOT, "page", "id")
_TEXT = (ROOT, "page", "revision", "text")
_WIKI = (ROOT, "siteinfo", "dbname")
_SITE = (ROOT, "siteinfo", "base")
_NAMESPACE_NAME = (ROOT, "siteinfo", "namespaces", "namespace")
_KEPT = {_TITLE, _NAMESPACE, _PAGE_ID, _TEXT, _WIKI, _SITE, _NAMESPACE_NAME}

# Where a dump does not say which pages redirect, as before format 0.4: every wiki knows this word.
_REDIRECT = re.compile(r"\s*#redirect\s*:?\s*\[\[([^\]|#]*)", re.IGNORECASE)


@dataclass
class Page:
    """A page with its newest revision in the dump. `text` is None if the dump holds none: it was deleted, or is left out."""

    title: str = ""
    page_id: int = 0
    namespace: int = ARTICLE_NAMESPACE
    redirects_to: str | None = None
    text: str | None = None


class Dump:
    """A dump's pages. `is_truncated` and `is_in_page`, whether it ends within a page, are known once all pages have been read."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.wiki = ""
        self.site = ""
        self.is_truncated = False
        self._bytes = ByteStream(file)
        self._fed = 0
        self._namespaces: dict[str, int] = {}
        self._path: list[str] = []
        self._attributes: dict[str, str] = {}
        self._characters: list[str] | None = None
        self._length = 0
        self._page: Page | None = None
        self._says_namespace = False
        self._is_ended = False
        self._done: list[Page] = []
        self._parser = self._new_parser()

    @property
    def is_in_page(self) -> bool:
        """Whether a page was begun and not ended."""
        return self._page is not None

    @property
    def read_bytes(self) -> int:
        """How much of the file was read, as it lies on disk."""
        return self._bytes.read_bytes

    def pages(self) -> Iterator[Page]:
        """Every whole page. Raises UsageError for what is not a dump."""
        for data in self._bytes:
            self._parse(data)
            yield from self._done
            self._done.clear()
        if self._fed == 0 and not self._bytes.is_cut:
            raise UsageError(f"{self.file}: the file is empty; expected a MediaWiki dump")
        self.is_truncated = self._bytes.is_cut or not self._is_ended
        if not self.is_truncated:
            self._parse(b"", is_last=True)

    def _new_parser(self) -> Any:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.buffer_size = 1 << 16
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        return parser

    def _parse(self, data: bytes, *, is_last: bool = False) -> None:
        self._fed += len(data)
        try:
            self._parser.Parse(data, is_last)
        except expat.ExpatError as error:
            raise self._why_unsuitable(f"not valid XML: {expat.ErrorString(error.code)}") from None
        if self._fed - self._parser.CurrentByteIndex > MAX_TAG_BYTES:
            raise self._why_unsuitable(f"a tag, comment or name is longer than {MAX_TAG_BYTES:,} bytes, which no dump has")

    def _why_unsuitable(self, problem: str) -> UsageError:
        return UsageError(
            f"{self.file}, line {self._parser.CurrentLineNumber:,} of the XML: {problem}; expected a MediaWiki dump "
            "(pages-articles, as .xml, .xml.bz2 or .xml.xz)"
        )

    def _refuse_doctype(self, *_: object) -> None:
        raise self._why_unsuitable("a document type is declared, which could define entities; no dump has one")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if not self._path and name != ROOT:
            raise self._why_unsuitable(f"the first element is <{name[:40]}>, not <{ROOT}>")
        if len(self._path) == MAX_DEPTH:
            raise self._why_unsuitable(f"elements are nested more than {MAX_DEPTH} deep")
        self._path.append(name)
        path = tuple(self._path)
        if path == (ROOT, "page"):
            self._page, self._says_namespace = Page(), False
        elif path == (ROOT, "page", "redirect") and self._page is not None:
            self._page.redirects_to = attributes.get("title", "")
        # Characters are asked for only where they are kept.
        is_kept = path in _KEPT
        self._attributes, self._characters, self._length = attributes, [] if is_kept else None, 0
        self._parser.CharacterDataHandler = self._add if is_kept else None

    def _add(self, characters: str) -> None:
        if self._characters is None:
            return
        self._length += len(characters)
        if self._length > MAX_CHARACTERS:
            raise self._why_unsuitable(f"<{self._path[-1]}> is longer than {MAX_CHARACTERS:,} characters")
        self._characters.append(characters)

    def _end(self, _: str) -> None:
        path = tuple(self._path)
        if self._characters is not None:
            self._take(path, "".join(self._characters))
        self._characters = self._parser.CharacterDataHandler = None
        self._path.pop()
        self._is_ended = not self._path
        if path == (ROOT, "page") and self._page is not None:
            self._done.append(self._finished(self._page))
            self._page = None

    def _take(self, path: tuple[str, ...], value: str) -> None:
        if path == _WIKI:
            self.wiki = value
        elif path == _SITE:
            self.site = value
        elif path == _NAMESPACE_NAME:
            self._namespaces[value] = self._whole_number(self._attributes.get("key", ""), "the key of a namespace")
        elif self._page is None:
            return
        elif path == _TITLE:
            self._page.title = value
        elif path == _NAMESPACE:
            self._page.namespace, self._says_namespace = self._whole_number(value, "<ns>"), True
        elif path == _PAGE_ID:
            self._page.page_id = self._whole_number(value, "<id>")
        elif path == _TEXT:
            # Of several revisions, the last in the file is the newest. Dumps of mere metadata say how long a text is, and hold
            # none.
            is_left_out = "deleted" in self._attributes or (not value and self._attributes.get("bytes", "0") != "0")
            self._page.text = None if is_left_out else value

    def _whole_number(self, text: str, what: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,18}", text):
            raise self._why_unsuitable(f"{what} is {text[:40]!r}, not a whole number")
        return int(text)

    def _finished(self, page: Page) -> Page:
        if not self._says_namespace:
            # Before format 0.6, only the title shows it.
            prefix, colon, _ = page.title.partition(":")
            page.namespace = self._namespaces.get(prefix, ARTICLE_NAMESPACE) if colon else ARTICLE_NAMESPACE
        if page.redirects_to is None and page.text is not None and (redirect := _REDIRECT.match(page.text)):
            page.redirects_to = redirect[1].strip()
        return page


def looks_like_dump(beginning: bytes) -> bool:
    """Whether a file that begins like this may be a dump."""
    return f"<{ROOT}".encode() in beginning[:4096]
