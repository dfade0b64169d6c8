"""The language of what users read: banned words, long sentences, and hashes of source files.

`python -m docsite.language` checks documents, help texts, keys of files, templates of reports, messages and definitions; `make lint` runs it.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass

from typer.main import get_command

from docsite.command_line import commands
from docsite.file_keys import FILE_KINDS, keys_of
from docsite.generated import ROOT

# The goal, and what is refused: any longer sentence than the one, and more sentences beyond the goal than the share.
GOAL_WORDS, MAX_WORDS, MAX_SHARE = 25, 40, 0.02

# Words of the glossary that are unambiguous, and what stands in their place.
BANNED: dict[str, str] = {
    r"\bprocessor time\b": "CPU time",
    r"\bhow sure\b": "confidence interval",
    r"\bto be had\b": "obtainable, available",
    r"\bin no time\b": "a figure",
    r"\bdo not lie\b": "without coordinated omission",
    r"\btells? on itself\b": "load-generator health",
    r"\bthe source study\b": "the paper",
    r"\b(?:is|are) told\b": "is reported, is printed",
    r"\b(?:takes?|taking) turns\b": "interleaved",
    r"\bown means\b": "native job",
    r"\bbeside\b": "next to, with, during",
    r"\basked for\b": "requested, read",
    r"\b(?:is|are|was|were) asked\b": "is queried, is polled, executes",
    r"\b(?:tells? (?:them|\w+s) apart|tells? of)\b": "distinguishes, reports",
    r"\bnobody (?:knows|named|wrote|tells)\b": "it is unknown, the default",
    r"\bdata (?:lie|lay)\b": "data are",
    r"\bmend(?:s|ed)?\b": "fix, repair",
    r"\b(?:goes|went) on\b|\bgo on (?:with|by)\b": "continues, is running",
    r"\b(?:runs? already|already runs?)\b": "is already running",
    r"\bbehind (?:@|\?|an? (?:colon|number|point)\b)": "after",
    r"\b(?:can|could|cannot) be told\b": "distinguished, known",
    # "There is no …" and comparisons are as they should be.
    r"(?<!there )(?<!which )\b(?:is|are) no (?:bundle|number|parameter|file|folder|whole|database|target|query|text|time|UTF-8|JSON|CSV)s?\b": "is not a",
    r"\b(?:operations|requests|rows|readings|answers|reads|writes|values|bytes|statements) a second\b": "per second",
}
# Of a file's bytes, as tools print it: what users see cites papers, not files.
_HASH = re.compile(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{16,64}\b")

_PACKAGE = ROOT / "python" / "sensorbench"
_TEMPLATES = _PACKAGE / "report" / "templates"
# What pages quote of bundles has the words of their time.
_EVIDENCE = re.compile(r"<!-- evidence: .*?<!-- end of evidence -->", flags=re.DOTALL)
# A string with fewer words than these is a name, or a piece of one.
_PROSE_WORDS = 4
# What shows that a string is code: statements, patterns and markup.
_CODE = re.compile(r"[{}|]| [<=>]+ |\(\?|^\s*(?:#!|<)|\b(?:SELECT|INSERT INTO|CREATE|CASE WHEN)\b|^(?:[A-Z_]{3,}\s+){4}")
# Results carry a copy of their schemas, so that another word makes another schema.
_NO_DEFINITIONS = ("schemas",)


@dataclass(frozen=True)
class Text:
    """A paragraph, and where it is."""

    place: str
    text: str


@dataclass(frozen=True)
class Finding:
    """What is wrong at a place."""

    place: str
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


def paragraphs_of(markdown: str, place: str) -> Iterator[Text]:
    """The paragraphs and elements of lists of a document, without code; each cell of a table is one."""
    prose = re.sub(r"^( *)```.*?^\1```[^\n]*$|<!--.*?-->", _blanked, markdown, flags=re.DOTALL | re.MULTILINE)
    gathered: list[str] = []
    begin = 0
    for number, line in enumerate([*prose.splitlines(), ""], start=1):
        stripped = line.strip()
        starts_anew = not stripped or re.match(r"([-*+]|\d+\.|#+|>|\||:::|!!!)\s?", stripped)
        if starts_anew and gathered:
            yield Text(f"{place}, line {begin}", " ".join(gathered))
            gathered = []
        if stripped.startswith("|"):
            yield from (
                Text(f"{place}, line {number}", cell.strip()) for cell in re.split(r"(?<!\\)\|", stripped) if cell.strip(" -:")
            )
        elif stripped:
            begin = begin if gathered else number
            gathered.append(re.sub(r"^([-*+]|\d+\.|#+|>)\s+", "", stripped))


def _blanked(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def sentences(text: str) -> list[str]:
    """The sentences of a paragraph, each piece of code and each link's address counting as a word at most."""
    plain = re.sub(r"`[^`]+`", "CODE", text)
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", plain)
    plain = re.sub(r"https?://\S+", "URL", plain)
    # Full stops of abbreviations end nothing.
    plain = re.sub(r"\b(e\.g|i\.e|cf|vs|etc|No|pp|al)\.", r"\1", plain)
    return [part.strip() for part in re.split(r"(?<=[.!?])[)\"”*_]*\s+", plain) if part.strip()]


def words(sentence: str) -> int:
    """How many words a sentence has; numbers, signs and what is called by a number (`IOT-14`) are none."""
    return len(re.findall(r"(?<![\w-])[^\W\d_][^\W\d_'’-]*(?:['’-][^\W\d_]+)*(?![\w-])", sentence))


def findings(texts: list[Text]) -> list[Finding]:
    """What is wrong in texts."""
    found = []
    for text in texts:
        plain = re.sub(r"`[^`]+`", "CODE", text.text)
        for pattern, better in BANNED.items():
            for match in re.finditer(pattern, plain, flags=re.IGNORECASE):
                found.append(Finding(text.place, f"{match[0]!r} is a banned word; write {better!r} or what it is"))
        found += [
            Finding(text.place, f"{match[0]!r}: cite the source, not the hash of a file") for match in _HASH.finditer(text.text)
        ]
        for sentence in sentences(text.text):
            if (count := words(sentence)) > MAX_WORDS:
                found.append(Finding(text.place, f"a sentence of {count} words (at most {MAX_WORDS}): {sentence[:70]}…"))
    return found


def share_of_long(texts: list[Text]) -> float:
    """The share of sentences that are longer than the goal."""
    counts = [words(sentence) for text in texts for sentence in sentences(text.text)]
    return sum(count > GOAL_WORDS for count in counts) / max(len(counts), 1)


def too_long(name: str, texts: list[Text]) -> list[Finding]:
    """What is wrong with texts together: that too many sentences are longer than the goal, with the place of each."""
    share = share_of_long(texts)
    if share <= MAX_SHARE:
        return []
    places = ", ".join(text.place for text in texts if any(words(sentence) > GOAL_WORDS for sentence in sentences(text.text)))
    return [Finding(name, f"{share:.1%} of the sentences have more than {GOAL_WORDS} words (at most {MAX_SHARE:.0%}): {places}")]


# What users read.


def documents() -> list[Text]:
    """The documents of the site, and those that it shows."""
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        text
        for file in files
        for text in paragraphs_of(_EVIDENCE.sub(_blanked, file.read_text("utf-8")), str(file.relative_to(ROOT)))
    ]


def help_texts() -> list[Text]:
    """Help of commands and options, and what is said of keys of files."""
    from sensorbench.cli.main import app

    found = []
    for path, command in commands(get_command(app)):
        for described in (command, *command.params):
            text = getattr(described, "help", None) or ""
            name = " ".join((*path, *getattr(described, "opts", ())[:1]))
            found += [Text(f"help of sensorbench {name}", part) for part in text.split("\n\n") if part.strip()]
    for kind in FILE_KINDS:
        found += [Text(f"{kind.title.lower()}, key {key.path}", key.about) for key in keys_of(kind.model) if key.about]
    return found


def templates() -> list[Text]:
    """The words of report templates."""
    found = []
    for file in sorted(_TEMPLATES.glob("*.j2")):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            said = re.sub(r"{[{%#].*?[}%#]}|<[^>]*>", " ", line).strip()
            if said:
                found.append(Text(f"{file.relative_to(ROOT)}, line {number}", said))
    return found


def messages() -> list[Text]:
    """What the program prints: strings of its sources that are sentences or parts of them. A value within is one word."""
    return [
        Text(f"{file.relative_to(ROOT)}, line {line}", said)
        for file in sorted(_PACKAGE.rglob("*.py"))
        for line, said in strings_of(file.read_text(encoding="utf-8"))
        if is_prose(said)
    ]


def strings_of(source: str) -> Iterator[tuple[int, str]]:
    """The strings of a Python source and their lines, without docstrings and code."""
    nodes = list(ast.walk(ast.parse(source)))
    left_out = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    left_out |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(str(part.value) if isinstance(part, ast.Constant) else "VALUE" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield node.lineno, node.value


def definitions() -> list[Text]:
    """What reports and lists say of studies, databases and settings: texts of the package's definitions."""
    files = [file for file in sorted(_PACKAGE.rglob("*.toml")) if file.relative_to(_PACKAGE).parts[0] not in _NO_DEFINITIONS]
    return [
        Text(f"{file.relative_to(ROOT)}, {key}", said)
        for file in files
        for key, said in _texts_in(tomllib.loads(file.read_text(encoding="utf-8")))
        if is_prose(said)
    ]


def is_prose(text: str) -> bool:
    """Whether a string is at least a part of a sentence, and no code."""
    return words(text) >= _PROSE_WORDS and not _CODE.search(text)


def _texts_in(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, below in value.items():
            yield from _texts_in(below, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list):
        for number, below in enumerate(value, start=1):
            yield from _texts_in(below, f"{key}[{number}]")


def main() -> int:
    """Prints what is wrong, and how long sentences are."""
    parts = {
        "documents": documents(),
        "help": help_texts(),
        "templates": templates(),
        "messages": messages(),
        "definitions": definitions(),
    }
    found = [finding for texts in parts.values() for finding in findings(texts)]
    found += [finding for name, texts in parts.items() for finding in too_long(name, texts)]
    for finding in found:
        print(finding)
    if found or "--share" in sys.argv:
        shares = ", ".join(f"{name} {share_of_long(texts):.0%}" for name, texts in parts.items())
        print(f"sentences of more than {GOAL_WORDS} words: {shares}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
