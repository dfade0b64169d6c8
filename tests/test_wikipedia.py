"""Articles: the importer of MediaWiki dumps, whole, cut off and malicious, and the sample in the package."""

import bz2
import lzma
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pyarrow.parquet as pq
import pytest

from sensorbench.dataset import open_dataset
from sensorbench.dataset.mediawiki import Dump
from sensorbench.dataset.wikipedia import SHIPPED_FOLDER
from tests.conftest import Cli

HEAD = """\
<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="el">
  <siteinfo><dbname>elwiki</dbname><base>https://el.example/wiki/%CE%A0</base>
    <namespaces><namespace key="0" /><namespace key="1">Talk</namespace></namespaces>
  </siteinfo>
"""
TAIL = "</mediawiki>\n"
TEXT = "Η γη & the <b>earth</b>\nis round.  Twice."


def page(
    number: int, text: str = TEXT, *, namespace: int | None = 0, redirect: str = "", title: str = "", attributes: str = ""
) -> str:
    says_namespace = "" if namespace is None else f"<ns>{namespace}</ns>"
    says_redirect = f"<redirect title={quoteattr(redirect)} />" if redirect else ""
    return (
        f"<page><title>{escape(title or f'Page {number}')}</title>{says_namespace}<id>{number}</id>{says_redirect}<revision><id>9{number}</id>"
        f"<contributor><id>7</id></contributor><text xml:space='preserve' {attributes}>{escape(text)}</text></revision></page>\n"
    )


def dump(pages: Iterable[str]) -> str:
    return HEAD + "".join(pages) + TAIL


def rows(folder: Path, query: str) -> list[tuple[Any, ...]]:
    with open_dataset(str(folder)).connect() as connection:
        found: list[tuple[Any, ...]] = connection.sql(query).fetchall()
        return found


def counts(found: dict[str, Any]) -> dict[str, Any]:
    names = ("pages", "articles", "redirects", "other_namespaces", "without_text", "duplicates", "cut_pages", "truncated")
    return {name: found[name] for name in names if found[name]}


def test_pages_become_articles_redirects_or_are_counted(cli: Cli, tmp_path: Path) -> None:
    pages = [
        page(3),
        page(5, "#REDIRECT [[Γη]]", redirect="Γη", title='"Γ" & η'),
        page(7, namespace=1),
        page(9, "#redirect [[Page 3|the third]]", title="told by the text alone"),
        page(11, "", attributes="deleted='deleted'"),
        page(12, "", attributes="bytes='30'"),
        page(13, "", attributes="bytes='0'"),
        page(3, "the same again"),
        page(15, "x", namespace=None, title="Talk:old"),
        page(17, "#REDIRECT is what this article explains", namespace=None, title="Not: a talk"),
        "<page><title>Twice</title><ns>0</ns><id>19</id><revision><text>old</text></revision><revision><text>new</text></revision></page>",
    ]
    (tmp_path / "dump.xml").write_text(dump(pages), encoding="utf-8")
    ended = cli("data", "import", "wikipedia", tmp_path / "dump.xml", "--out", tmp_path / "out", "--json")
    assert ended.exit_code == 0, ended.err
    expected = {"pages": 11, "articles": 4, "redirects": 2, "other_namespaces": 2, "without_text": 2, "duplicates": 1}
    assert counts(ended.json) == expected
    assert ended.json["truncated"] is False
    assert rows(tmp_path / "out", "SELECT * FROM articles ORDER BY id") == [
        (1, "Page 3", TEXT, "elwiki", 3),
        (2, "Page 13", "", "elwiki", 13),
        (3, "Not: a talk", "#REDIRECT is what this article explains", "elwiki", 17),
        (4, "Twice", "new", "elwiki", 19),
    ]
    redirects = [('"Γ" & η', "Γη", "elwiki", 5), ("told by the text alone", "Page 3", "elwiki", 9)]
    assert rows(tmp_path / "out", "SELECT * FROM redirects ORDER BY page_id") == redirects
    described = cli("data", "describe", tmp_path / "out").out
    assert "Of 11 pages 4 are articles and 2 redirect" in described
    assert "https://el.example/wiki/Π" in described
    assert "span" not in described


@pytest.mark.parametrize("compress", [bz2.compress, lzma.compress])
def test_several_files_of_several_streams_are_read_one_after_the_other(cli: Cli, tmp_path: Path, compress: Any) -> None:
    whole = dump(page(number) for number in range(1, 31)).encode()
    streams = [whole[start : start + 700] for start in range(0, len(whole), 700)]
    (tmp_path / "multistream").write_bytes(b"".join(map(compress, streams)))
    (tmp_path / "other").write_bytes(compress(dump([page(30), page(31)]).replace("elwiki", "enwiki").encode()))
    # A dump says what it is by itself.
    ended = cli("data", "import", tmp_path / "multistream", tmp_path / "other", "--out", tmp_path / "out", "--json")
    assert counts(ended.json) == {"pages": 32, "articles": 32}
    assert rows(tmp_path / "out", "SELECT wiki, page_id FROM articles WHERE id >= 30 ORDER BY id") == [
        ("elwiki", 30),
        ("enwiki", 30),
        ("enwiki", 31),
    ]


def test_a_dump_may_end_anywhere(cli: Cli, tmp_path: Path) -> None:
    whole = dump([page(1), page(2)]).encode()
    file = tmp_path / "cut"
    for compress in (bytes, lzma.compress):
        packed, most = compress(whole), 0
        for end in range(1 if compress is bytes else 6, len(packed), 1 if compress is bytes else 7):
            file.write_bytes(packed[:end])
            read = Dump(file)
            articles = [article.text for article in read.pages()]
            assert most <= len(articles) <= 2
            assert articles == [TEXT] * len(articles)
            most = len(articles)
            assert read.is_truncated is (compress is not bytes or end < len(whole) - 1), end
            if compress is bytes:
                assert len(articles) == whole[:end].count(b"</page>")
        assert most == 2, compress
    # Cut in a multistream dump: between two streams, and at an odd byte of one.
    for cut_off in (0, 37):
        file.write_bytes(bz2.compress(whole[:-40]) + bz2.compress(whole[-40:])[:cut_off])
        out = tmp_path / f"out{cut_off}"
        ended = cli("data", "import", "wikipedia", file, "--out", out, "--json")
        assert ended.exit_code == 0, ended.err
        assert counts(ended.json) == {"pages": 1, "articles": 1, "cut_pages": 1, "truncated": True}
        assert ended.json["truncated_files"] == ["cut"]
        assert "1 pages that were begun there are left out" in cli("data", "describe", out).out


ENTITIES = '<!DOCTYPE m [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "the file is empty"),
        (b"<feed><entry/></feed>", "the first element is <feed>, not <mediawiki>"),
        ((ENTITIES + dump([page(1, "&b;&c;")])).encode(), "line 1 of the XML: a document type is declared"),
        (dump([page(1).replace("earth", "&undefined;")]).encode(), "not valid XML: undefined entity"),
        (dump([page(1).replace("<id>1<", "<id>one<")]).encode(), "line 5 of the XML: <id> is 'one', not a whole number"),
        (dump([page(1)]).replace("</page>", "</pge>").encode(), "not valid XML: mismatched tag"),
        (dump([page(1)]).encode() + b"more", "not valid XML"),
        (dump([page(1, namespace=1)]).encode(), "the files hold no article at all (1 pages)"),
        (dump([page(1, "", attributes="bytes='9'")]).encode(), "dumps whose name has `stub` hold no texts"),
        (bz2.compress(bytes(1000))[:30] + b"damaged" * 10, "the compressed data are damaged"),
        (HEAD.encode() + b"<page>" * 100, "elements are nested more than 64 deep"),
        (HEAD.encode() + b"<page a='" + b"a" * (8 << 20), "longer than 4,194,304 bytes"),
        (bz2.compress(HEAD.encode() + b"<page><title>" + b"a" * (20 << 20)), "<title> is longer than 16,777,216 characters"),
    ],
)
def test_what_is_no_dump_is_told(cli: Cli, tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "file").write_bytes(content)
    ended = cli("data", "import", "wikipedia", tmp_path / "file", "--out", tmp_path / "out")
    assert ended.exit_code == 2
    assert problem in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["file"], "nothing is left"


def test_a_file_that_is_not_there_is_told(cli: Cli, tmp_path: Path) -> None:
    ended = cli("data", "import", "wikipedia", tmp_path / "none.xml", "--out", tmp_path / "out")
    assert ended.exit_code == 2
    assert "none.xml: no such file" in ended.err


def test_memory_does_not_grow_with_a_dump(tmp_path: Path) -> None:
    def peak(pages: int) -> int:
        file = tmp_path / "dump.bz2"
        file.write_bytes(bz2.compress(dump(page(number, TEXT * 500) for number in range(pages)).encode(), 1))
        tracemalloc.start()
        assert sum(1 for _ in Dump(file).pages()) == pages
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(600) < 1.2 * peak(150)


def test_the_sample_in_the_package_is_what_it_says(cli: Cli, tmp_path: Path) -> None:
    assert sum(file.stat().st_size for file in SHIPPED_FOLDER.iterdir()) <= 2_000_000
    described = cli("data", "describe", "wikipedia", "--json").json
    assert counts(described) == {
        "pages": 395,
        "articles": 126,
        "redirects": 101,
        "other_namespaces": 168,
        "cut_pages": 5,
        "truncated": True,
    }
    assert "CC BY-SA" in described["license"]
    assert (described["generated"], described["first_time"]) == (False, None)
    with open_dataset("wikipedia").connect() as connection:
        facts = "SELECT min(id), max(id), count(*), count(DISTINCT wiki), min(length(text)) > 0, any_value(text ORDER BY id)[:20] FROM articles"
        assert connection.sql(facts).fetchall() == [(1, 126, 126, 5, True, "{{Redirect2|Anarchis")]


def test_a_part_of_the_articles_is_the_first_of_them(cli: Cli, tmp_path: Path) -> None:
    part = cli("data", "describe", "wikipedia", "--scale", "0.1", "--json").json
    assert part["relations"]["articles"]["rows"] == 13
    assert cli("data", "export", "wikipedia", "--scale", "0.1", "--format", "parquet", "--out", tmp_path / "out").exit_code == 0
    assert pq.read_table(tmp_path / "out/articles.parquet")["id"].to_pylist() == list(range(1, 14))
    refused = cli("data", "export", "wikipedia", "--format", "influx", "--out", tmp_path / "influx")
    assert refused.exit_code == 2
    assert "dataset wikipedia has no times" in refused.err
