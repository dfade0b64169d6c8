"""Whether the answers of a comparison were equal, and what the databases held after the runs."""

from collections.abc import Mapping

from sensorbench.report import formatting
from sensorbench.results.page import Block, Columns, Line, Piece, Section, Table, Text
from sensorbench.results.summary.comparison import AnswerChecks, AnswerComparison, ComparisonSummary


def answers(summary: ComparisonSummary) -> Section:
    """Whether the answers were equal, and what the databases held after the runs."""
    result = summary.result
    written = (
        "The runs wrote. So each database was read again afterwards, and its answers were compared with the dataset and all acknowledged "
        "writes together"
    )
    return Section(
        "answers",
        "Were the answers equal?",
        [*_compared(summary), _checked(written, result.contents), _checked("Answers computed manually", result.known_answers)],
    )


def _compared(summary: ComparisonSummary) -> list[Block]:
    result = summary.result
    if summary.answers_equal is None:
        why = f", because the benchmark is {summary.status}" if summary.status != "complete" else ""
        return [Text(f"Answers were not compared{why}.")]
    said = "All answers were equal." if summary.answers_equal else "Some answers were different."
    style = "good" if summary.answers_equal else "bad"
    if not result.answers:
        return [Text(said, style)]
    how = (
        " Compared are the number of rows and an order-free sum of row hashes over exact values, for every request of every run. A sample "
        "of them is also compared with answers that DuckDB computed from the dataset itself."
    )
    titles = {name: result.operations[name].title for name in result.answers}
    return [Text([said, how], style), compared_answers(result.answers, titles)]


def compared_answers(answers: Mapping[str, AnswerComparison], titles: Mapping[str, str]) -> Table:
    """A line for each kind of operation: how many of its answers were compared, and which differ. `titles`: what each is called."""
    columns: Columns = [
        ("Operation", "label"),
        ("compared", "count"),
        ("of these with the reference", "count"),
        ("different", "count"),
        ("", "text"),
    ]
    rows: list[list[Line]] = [
        [
            titles[name],
            answer.compared,
            answer.compared_with_reference,
            Piece(answer.mismatch_count, "good" if answer.equal else "bad"),
            [Piece(f"request {of.k}, {of.variant} against {of.other}: {of.problem}", "bad") for of in answer.mismatches],
        ]
        for name, answer in answers.items()
    ]
    return Table(columns, rows)


def _checked(title: str, checks_by_variant: dict[str, AnswerChecks]) -> Text | None:
    """How answers, or contents after writes, compared with what was expected."""
    if not checks_by_variant:
        return None
    named = [(formatting.variant(variant), checks) for variant, checks in checks_by_variant.items()]
    gave = ", ".join(f"{name} {_gave(checks)}" for name, checks in named)
    unanswered = "".join(
        f" {name}: {checks.unanswered:,} of its questions failed and were not compared."
        for name, checks in named
        if checks.unanswered
    )
    not_reached = "".join(
        f" {name}: {checks.not_reached:,} more were planned and not compared, for want of time."
        for name, checks in named
        if checks.not_reached
    )
    read_back = "".join(f" {name}: {_read_back(checks)}." for name, checks in named if checks.read_back)
    problems = [
        Piece(f"{name}, {problem.operation} {problem.parameters}: {problem.problem}", "bad block")
        for name, checks in named
        for problem in checks.problems
    ]
    return Text([f"{title}: {gave}.{unanswered}{not_reached}{read_back}", *problems])


def _gave(checks: AnswerChecks) -> str:
    if checks.not_checked:
        return f"could not be checked: {checks.not_checked}"
    if checks.accounting and not checks.queried:
        return "was accounted for reading by reading"
    return f"gave {checks.queried - checks.wrong} of {checks.queried}"


def _read_back(checks: AnswerChecks) -> str:
    sample = f" (one in {formatting.count(checks.one_write_in)})" if checks.one_write_in > 1 else ""
    unknown = ""
    if checks.unknown_writes:
        unknown = (
            f"; of {formatting.count(checks.unknown_writes)} whose outcome the client did not learn, "
            f"{formatting.count(checks.unknown_writes_found)} had taken place"
        )
    written = f"{formatting.count(checks.read_back)} acknowledged writes{sample} were read back one by one"
    return f"{written}, {formatting.count(checks.lost_writes)} were lost{unknown}"
