"""What became of every reading that the writes of a comparison delivered."""

from collections.abc import Iterator

from sensorbench.report import formatting
from sensorbench.results.page import Columns, Line, Piece, Section, Table, Text
from sensorbench.results.summary.accounting import RetentionAccounting, StreamAccounting
from sensorbench.results.summary.comparison import ComparisonFigures
from sensorbench.wording import counted

_RULES = {
    None: "not stated",
    "last": "the last write counts",
    "first": "the first write counts",
    "both": "all writes are kept",
    "highest": "the highest value counts",
    "distinct": "each value is kept once",
    "any": "one of the writes counts",
}


def accounting_section(result: ComparisonFigures) -> Section | None:
    """The accounts of each variant, where the workload has a delivery."""
    accounts = [(variant, of_write) for variant, checks in result.contents.items() for of_write in checks.accounting]
    if not accounts:
        return None
    text = (
        "Which readings the database must hold follows from the acknowledged writes and from the schema's rule for duplicates. DuckDB computed "
        "them, and each database was read whole afterwards. A reading is undecided where several values are right: its deliveries overlapped, "
        "or the client did not learn the outcome of one."
    )
    columns: Columns = [
        ("Variant", "name"),
        ("rule for duplicates", "text"),
        ("readings", "whole"),
        ("sent again", "whole"),
        ("unknown outcome", "whole"),
        ("lost", "whole"),
        ("wrong winner", "whole"),
        ("too many", "whole"),
        ("other value", "whole"),
        ("undecided", "whole"),
    ]
    rows: list[list[Line]] = [
        [
            formatting.variant(variant),
            _rule(of_write),
            of_write.readings,
            of_write.again,
            of_write.unknown,
            *(
                Piece(count, "bad" if count else "good")
                for count in (of_write.lost, of_write.wrong_winners, of_write.extra, of_write.other_values)
            ),
            of_write.undecided,
        ]
        for variant, of_write in accounts
    ]
    notes = [note for variant, of_write in accounts for note in _notes(variant, of_write)]
    return Section(
        "accounting", "Is every acknowledged reading there?", [Text(text), Table(columns, rows), *notes, _lateness(accounts)]
    )


def _rule(of_write: StreamAccounting) -> Line:
    rule: Line = _RULES[of_write.rule]
    if of_write.explained_by is None:
        return rule
    return [rule, " ", Piece(f"What was found agrees with another rule: {_RULES[of_write.explained_by]}.", "bad wrapped")]


def _notes(variant: str, of_write: StreamAccounting) -> Iterator[Text]:
    name = formatting.variant(variant)
    if of_write.unanswered:
        yield Text(
            f"{name}: {formatting.count(of_write.unanswered)} of {formatting.count(of_write.segments)} ranges were not answered.",
            "bad",
        )
    if of_write.unexamined:
        yield Text(
            f"{name}: {formatting.count(of_write.unexamined)} more ranges differ. Their readings were not looked at one by one.",
            "bad",
        )
    if of_write.unstable:
        yield Text(
            f"{name}: {formatting.count(of_write.unstable)} ranges differed when they were read whole, and not reading by reading.",
            "bad",
        )


def _lateness(accounts: list[tuple[str, StreamAccounting]]) -> Table | None:
    """How far readings came behind others of their series."""
    known = [(variant, of_write.lateness) for variant, of_write in accounts if of_write.lateness is not None]
    if not any(lateness.out_of_order for _, lateness in known):
        return None
    late_after_s = next((lateness.late_after_s for _, lateness in known if lateness.late_after_s is not None), None)
    columns: Columns = [
        ("Variant", "name"),
        ("out of order", "text"),
        ("older than the newest by (p50, p99, max)", "text"),
        ("places behind (p50, p99, max)", "text"),
        (f"later than {formatting.duration(late_after_s)}" if late_after_s is not None else "", "text"),
    ]
    rows: list[list[Line]] = [
        [
            formatting.variant(variant),
            formatting.percent(lateness.out_of_order),
            ", ".join(formatting.duration(value) for value in lateness.time_s.values()),
            ", ".join(formatting.count(value) for value in lateness.rows.values()),
            formatting.percent(lateness.late) if lateness.late is not None else "",
        ]
        for variant, lateness in known
    ]
    return Table(columns, rows)


def retained_accounts(result: ComparisonFigures) -> list[tuple[str, StreamAccounting, RetentionAccounting]]:
    """The accounts of readings that expired, by variant."""
    return [
        (variant, of_write, of_write.retention)
        for variant, checks in result.contents.items()
        for of_write in checks.accounting
        if of_write.retention is not None
    ]


def failed_actions(result: ComparisonFigures) -> list[str]:
    """How many actions of retention failed, and the first error, by variant and kind."""
    return [
        f"{formatting.variant(variant)}: {counted(actions.failed, f'{actions.kind} action')} failed: {actions.first_error}"
        for variant, of in result.retention.items()
        for actions in of.actions
        if actions.failed
    ]


def described_rollup(retention: RetentionAccounting) -> str:
    """How many rows of a rollup are not as they should be, and why, as far as that is known."""
    rollup = retention.rollup
    if rollup is None:
        return "no rollup is kept"
    if not rollup.wrong:
        return f"{rollup.rows:,} rows of the rollup, each as it must be"
    if rollup.by_late == rollup.wrong:
        why = ", all of them by late readings"
    elif rollup.by_late:
        why = f", {rollup.by_late:,} of them by late readings"
    else:
        why = ", none of them by late readings"
    return f"{rollup.wrong:,} of {rollup.rows + rollup.extra:,} rows of the rollup differ{why}"
