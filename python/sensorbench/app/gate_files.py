"""What a gate writes for others: JUnit for CI servers, Markdown for pull requests, a badge for a README."""

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from sensorbench.errors import UsageError
from sensorbench.report import formatting
from sensorbench.results.files import write_text
from sensorbench.results.summary.gate import GateOperation, GateResult, GateWord

# By which our own files are known again, and may be replaced.
_OURS = "sensorbench gate"
_FIRST_BYTES = 400
_COLOURS: dict[GateWord, str] = {"not slower": "#2fa37c", "slower": "#d1495b", "undecided": "#d9a521"}
_WORDS: dict[GateWord, str] = {"not slower": "not slower", "slower": "slower", "undecided": "undecided"}


def check_gate_file(option: str, path: Path | None) -> None:
    """Raises UsageError for a file that cannot be written: its folder is not there, or something lies there that no gate wrote."""
    if path is None:
        return
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError(f"{option} {path}: expected a file in an existing folder")
    if path.exists() and path.stat().st_size and _OURS not in path.read_bytes()[:_FIRST_BYTES].decode(errors="replace"):
        raise UsageError(
            f"{option} {path}: sensorbench did not write this file and does not overwrite it; move it, or name another place"
        )


def write_gate_files(result: GateResult, *, junit: Path | None, markdown: Path | None, badge: Path | None) -> None:
    """Writes those that are wanted."""
    for path, text in ((junit, junit_text), (markdown, markdown_text), (badge, _badge_of(badge))):
        if path is not None:
            write_text(path, text(result))


def junit_text(result: GateResult) -> str:
    """The gate as JUnit's XML: a test case for each operation. A slowdown is a failure, what is undecided an error."""
    by_word = {word: sum(each.verdict == word for each in result.operations) for word in _WORDS}
    attributes = {
        "name": _OURS,
        "tests": str(len(result.operations)),
        "failures": str(by_word["slower"]),
        "errors": str(by_word["undecided"]),
        "time": f"{result.took_s:.3f}",
    }
    suites = ElementTree.Element("testsuites", attributes)
    suite = ElementTree.SubElement(
        suites, "testsuite", {**attributes, "name": result.title, "timestamp": result.created.isoformat()}
    )
    for each in result.operations:
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": result.title, "name": each.operation, "time": f"{result.took_s:.3f}"}
        )
        if each.verdict != "not slower":
            kind = "failure" if each.verdict == "slower" else "error"
            element = ElementTree.SubElement(case, kind, {"message": f"{each.verdict}: {_ratio(each)}", "type": each.verdict})
            element.text = f"{each.reason}\n" + "\n".join(result.differences)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def markdown_text(result: GateResult) -> str:
    """The gate as Markdown, for the summary of a pull request."""
    rows = [
        f"| {each.operation} | {formatting.duration(each.base_s)} | {formatting.duration(each.head_s)} | {_ratio(each)} | "
        f"{_percent(each.detectable)} | {each.verdict} |"
        for each in result.operations
    ]
    differences = [f"- {difference}" for difference in result.differences] or ["- nothing that the databases report"]
    return "\n".join(
        [
            f"<!-- {_OURS} -->",
            f"### {result.title}: head is {_words(result)}",
            "",
            f"{result.reason}.",
            "",
            "| operation | base | head | head / base | detectable | verdict |",
            "|---|--:|--:|--:|--:|---|",
            *rows,
            "",
            "What differs between base and head:",
            "",
            *differences,
            "",
            f"{result.metric}, {result.repetitions} of at most {result.max_repetitions} interleaved repetitions in {formatting.duration(result.took_s)}; "
            f"margin {formatting.percent(result.margin)}. *Detectable*: the slowdown that these repetitions show in four of five sessions, by the noise of "
            "base against itself.",
            "",
        ]
    )


def _words(result: GateResult) -> str:
    return {"not slower": "not slower", "slower": "**slower**", "undecided": "neither slower nor not slower: **undecided**"}[
        result.verdict
    ]


def _badge_of(path: Path | None) -> Callable[[GateResult], str]:
    return badge_json if path is not None and path.suffix == ".json" else badge_svg


def badge_json(result: GateResult) -> str:
    """The badge as the endpoint of shields.io takes it."""
    content = {"schemaVersion": 1, "label": _OURS, "message": _WORDS[result.verdict], "color": _COLOURS[result.verdict]}
    return json.dumps(content, indent=1) + "\n"


def badge_svg(result: GateResult) -> str:
    """The badge as a picture."""
    message, colour = _WORDS[result.verdict], _COLOURS[result.verdict]
    left, right = 6 * len(_OURS) + 14, 6 * len(message) + 14
    label = escape(f"{_OURS}: {message}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{label}"><title>{label}</title>'
        f'<rect width="{left}" height="20" fill="#555"/><rect x="{left}" width="{right}" height="20" fill="{colour}"/>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,sans-serif" font-size="11">'
        f'<text x="{left / 2}" y="14">{_OURS}</text><text x="{left + right / 2}" y="14">{escape(message)}</text></g></svg>\n'
    )


def _ratio(each: GateOperation) -> str:
    ratio = each.ratio
    if ratio.value is None or ratio.low is None or ratio.high is None:
        return "not known"
    return f"{ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"


def _percent(share: float | None) -> str:
    return "not known" if share is None else formatting.percent(share)
