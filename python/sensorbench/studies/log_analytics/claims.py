"""How the claims of the persistent-log study (claims.toml) are judged.

Most claims are about cells: a pair of variants and an operation, at one size. Each cell is judged by itself, with its interval where it
was measured more than once, and `all_of` says what follows for the claim. A comparison is of one size; each size has its own verdict.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from sensorbench.analysis.intervals import Interval
from sensorbench.analysis.verdicts import judge as verdict_of
from sensorbench.claims import (
    NEAR,
    Case,
    Evidence,
    Judge,
    Judgement,
    about,
    all_of,
    at_least_one,
    at_most,
    greater_than_one,
    near_one,
    near_or_above_one,
    single_ratio,
)
from sensorbench.studies.log_analytics.published import (
    CASSANDRA,
    CLUSTERED,
    COUNT_RANGE,
    FETCH_RANGE,
    LEVELS,
    LOOK_UP,
    RANGES,
    RELATIONAL,
    SYSTEMS,
    Place,
    role,
    size_of,
    variant_at,
    variants_for,
)

# Roles whose ratio is looked at: the first over the second.
Pair = tuple[str, str]
Rule = Callable[[Interval | None], Judgement]
RuleOfOne = Callable[[float | None, str], Judgement]

FETCH = tuple(f"{FETCH_RANGE}.{range_}" for range_ in RANGES)
COUNT = tuple(f"{COUNT_RANGE}.{range_}" for range_ in RANGES)
KEYED = LEVELS[1:]

# Below this, fixed costs are more than a tenth of what is compared. Databases settle for some tenths of a second, and load a million
# records in some seconds; InnoDB's tables grow by megabytes, and took 10 MB for 39,060 records.
MIN_RECORDS = 1_000_000
# Cassandra's SSTables are written and streamed by a Java program: 39,060 records took 13 s, and 976,500 took 27 s (2 processors).
MIN_RECORDS_BY_SSTABLES = 10_000_000
# A record of the source's log as text: 1 GB has 19.53 million, 4 GB have 74.55 million.
RAW_BYTES_A_RECORD = 54
INSTANTANEOUS_S = 0.0002

ONCE = "measured once each"
LOADING = "time until loaded and settled"
OWN_LOADER = "each system is loaded by its own bulk loader, Cassandra by SSTables"
OTHER_LOADER = "the other loader is that of this project, which writes through the nodes; the source used the shell's COPY"
DURABILITY = "as in the source, the weak configuration is not durable and the strong one is"


def _cases(evidence: Evidence, pairs: Iterable[Pair], case: Callable[[str, str], list[Case]]) -> tuple[list[Case], list[str]]:
    """The cells of the pairs of which both were measured, and the roles that were not."""
    pairs = list(pairs)
    measured = [pair for pair in pairs if set(pair) <= evidence.roles.keys()]
    missing = dict.fromkeys(found_case for pair in pairs for found_case in pair if found_case not in evidence.roles)
    return [found_case for pair in measured for found_case in case(*pair)], list(missing)


def _at_operations(pairs: Iterable[Pair], operations: Sequence[str], rule: Rule = greater_than_one) -> Judge:
    """Judges the latencies of pairs, operation by operation: the first over the second."""
    pairs = list(pairs)

    def judge(evidence: Evidence) -> Judgement:
        return all_of(*_cases_of_operations(evidence, pairs, operations, rule))

    return judge


def _cases_of_operations(
    evidence: Evidence, pairs: Iterable[Pair], operations: Sequence[str], rule: Rule
) -> tuple[list[Case], list[str]]:
    def case(name: str, other: str) -> list[Case]:
        contrasts = (
            (operation, evidence.contrast([(name, operation, 1.0), (other, operation, -1.0)])) for operation in operations
        )
        return [Case(f"{name} over {other}, {_word(operation)}", rule(contrast)) for operation, contrast in contrasts]

    return _cases(evidence, pairs, case)


def _word(operation: str) -> str:
    name, _, part = operation.partition(".")
    return " ".join(filter(None, [{LOOK_UP: "Q1", FETCH_RANGE: "Q2", COUNT_RANGE: "Q3"}[name], part]))


def _loaded(pairs: Iterable[Pair], rule: RuleOfOne = single_ratio, note: str = "") -> Judge:
    """Judges the times until loaded and settled of pairs, where there is enough to load."""
    pairs = list(pairs)
    min_records = MIN_RECORDS_BY_SSTABLES if any(name.startswith("CA") for pair in pairs for name in pair) else MIN_RECORDS
    return _once(pairs, lambda evidence, pair: evidence.loaded_s(pair), LOADING, rule, min_records, note)


def _sized(pairs: Iterable[Pair], rule: RuleOfOne = single_ratio) -> Judge:
    """Judges the sizes of pairs, where there is enough to fill them."""
    return _once(pairs, lambda evidence, pair: evidence.size_bytes(pair), "bytes after settling", rule, MIN_RECORDS, "")


def _once(
    pairs: Iterable[Pair],
    figure: Callable[[Evidence, str], float | None],
    what: str,
    rule: RuleOfOne,
    min_records: int,
    note: str,
) -> Judge:
    """Judges a figure that each variant has once, pair by pair."""
    pairs = list(pairs)

    def judge(evidence: Evidence) -> Judgement:
        def case(name: str, other: str) -> list[Case]:
            above, below = figure(evidence, name), figure(evidence, other)
            return [Case(f"{name} over {other}", rule(above / below if above and below else None, what))]

        cases, missing = _cases(evidence, pairs, case)
        judgement = all_of(cases, missing)
        how = f"{what}, {ONCE}" if len(cases) > 1 else ""
        reasoned = replace(judgement, reason="; ".join(filter(None, [judgement.reason, how, note])))
        return _if_large_enough(reasoned, evidence, min_records)

    return judge


def _if_large_enough(judgement: Judgement, evidence: Evidence, min_records: int) -> Judgement:
    """The judgement where there are so many records; below, what it would be."""
    records = _records(evidence)
    if records >= min_records or judgement.word == "not tested here":
        return judgement
    reason = f"needs {min_records:,} records, so that fixed costs do not decide; there are {records:,}, and so far: {judgement.word}, {judgement.reason}"
    return Judgement("not tested at this scale", judgement.measured, reason)


def _records(evidence: Evidence) -> int:
    return int(evidence.result.manifest.plan.dataset["relations"]["log"]["rows"])


def _once_within(low: float, high: float, rule: str) -> RuleOfOne:
    """Judges that something that was measured once lies within limits."""

    def judge(ratio: float | None, what: str) -> Judgement:
        if ratio is None:
            return single_ratio(None, what)
        measured = {"value": ratio, "low": None, "high": None}
        return Judgement(
            "holds" if low <= ratio <= high else "does not hold", measured, f"{what}; measured once, no interval; {rule}"
        )

    return judge


_ONCE_NEAR_ONE = _once_within(1.0 / (1.0 + NEAR), 1.0 + NEAR, f"near 1 means within {NEAR:.0%}")
_ONCE_NEAR_THREE = _once_within(3.0 / (1.0 + NEAR), 3.0 * (1.0 + NEAR), f"a little over three means within {NEAR:.0%} of three")
_ONCE_NEAR_FOUR = _once_within(4.0 / (1.0 + NEAR), 4.0 * (1.0 + NEAR), f"four times means within {NEAR:.0%} of four")


def _on_the_log(judge: Judge) -> Judge:
    """For claims about ranges or sizes of the source's log, which other data do not have."""

    def guarded(evidence: Evidence) -> Judgement:
        if size_of(evidence.result) is None:
            name = evidence.result.manifest.plan.dataset["name"]
            return Judgement(
                "not tested here", None, f"it is about ranges or sizes of the source's log, which {name} does not have"
            )
        return judge(evidence)

    return guarded


def _others(subject: str, level: str, but: Sequence[str] = ()) -> list[str]:
    """The roles of all other systems at a level of indexes."""
    systems = [system for system in SYSTEMS if system != subject and system not in but]
    return [role(system, level) for system in systems if not (level == "none" and system in CASSANDRA)]


def _pairs_above(subject: str, levels: Sequence[str], but: Sequence[str] = ()) -> list[Pair]:
    """Each other system over a subject, level by level: the subject is the fastest."""
    return list(dict.fromkeys((other, role(subject, level)) for level in levels for other in _others(subject, level, but)))


def _reversed(pairs: Iterable[Pair]) -> list[Pair]:
    return [(other, pair) for pair, other in pairs]


def _of_levels(systems: Sequence[str], above: str, below: str) -> list[Pair]:
    """Each system at one level of indexes over itself at another."""
    return [(role(system, above), role(system, below)) for system in systems]


def _ahead_then_behind(evidence: Evidence) -> Judgement:
    """LOG-2: at 6GB Redis did not fit, so that nothing is claimed of it."""
    pairs = {"1GB": ("Redis", "DB-O none"), "2GB": ("Redis", "DB-O none"), "4GB": ("DB-O none", "Redis")}
    size = size_of(evidence.result)
    if size not in pairs:
        return Judgement("not tested here", None, f"it says nothing of {size}")
    return _loaded([pairs[size]])(evidence)


def _loader_wins(evidence: Evidence) -> Judgement:
    """LOG-12: by SSTables in both, and the cluster gains more by it."""
    single, cluster = (
        _ratio(evidence.loaded_s(f"{system} by writes"), evidence.loaded_s(f"{system} key")) for system in ("CA", "CA-SH")
    )
    cases = [
        Case("CA by writes over CA key", single_ratio(single, "")),
        Case("CA-SH by writes over CA-SH key", single_ratio(cluster, "")),
        Case("gain of CA-SH over gain of CA", single_ratio(_ratio(cluster, single), "")),
    ]
    judgement = all_of(cases)
    reasoned = replace(judgement, reason=f"{judgement.reason}; {LOADING}, {ONCE}; {OTHER_LOADER}")
    return _if_large_enough(reasoned, evidence, MIN_RECORDS_BY_SSTABLES)


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above and below else None


def _small_and_large(evidence: Evidence) -> Judgement:
    """LOG-20: compared without indexes, as the source's own figures agree with it there."""
    best, missing = _cases_of_operations(evidence, [("DB-C none", "Redis"), ("DB-O none", "Redis")], FETCH[:2], greater_than_one)
    poor, also_missing = _cases_of_operations(evidence, [("Redis", "DB-C none")], FETCH[2:], greater_than_one)
    return all_of([*best, *poor], list(dict.fromkeys([*missing, *also_missing])))


def _helps_one(evidence: Evidence) -> Judgement:
    """LOG-27."""
    helped, missing = _cases_of_operations(evidence, _of_levels(["DB-O"], "none", "key"), (*FETCH, *COUNT), greater_than_one)
    unchanged, also_missing = _cases_of_operations(evidence, _of_levels(["DB-C"], "key", "none"), (*FETCH, *COUNT), near_one)
    return all_of([*helped, *unchanged], [*missing, *also_missing])


def _helps_small_alone(evidence: Evidence) -> Judgement:
    """LOG-28: faster at the narrowest range, and not faster at the two widest; between them it says nothing."""
    faster, missing = _cases_of_operations(evidence, _of_levels(RELATIONAL, "key", "key+value"), FETCH[:1], greater_than_one)
    not_faster, _ = _cases_of_operations(evidence, _of_levels(RELATIONAL, "key+value", "key"), FETCH[5:], at_least_one)
    return all_of([*faster, *not_faster], missing)


def _never_scans(evidence: Evidence) -> Judgement:
    """LOG-31, of fetching: a count can be had from the index alone, so that leaving it would gain nothing. The plan says it; where
    there is none, the time does: that of a scan is that without the index.
    """
    cases: list[Case] = []
    missing: list[str] = []
    for indexed, plain in _of_levels(RELATIONAL, "key+value", "key"):
        if indexed not in evidence.roles:
            missing.append(indexed)
            continue
        for operation in FETCH[4:]:
            access = evidence.access(indexed, operation)
            name = f"{indexed}, {_word(operation)}: {access or 'no plan, by its time'}"
            cases.append(Case(name, _planned(access) if access else _differs(evidence, indexed, plain, operation)))
    return all_of(cases, missing)


def _planned(access: str) -> Judgement:
    return Judgement("holds" if access.startswith("index ") else "does not hold", None, "as planned by the database")


def _differs(evidence: Evidence, indexed: str, plain: str, operation: str) -> Judgement:
    """Judges that an operation takes another time with an index than without."""
    if plain not in evidence.roles:
        return greater_than_one(None)
    contrast = evidence.contrast([(indexed, operation, 1.0), (plain, operation, -1.0)])
    judgement = greater_than_one(contrast)
    if judgement.word == "does not hold":
        return replace(judgement, word="holds")
    is_same = contrast is not None and verdict_of(contrast).word == "equivalent"
    return replace(judgement, word="does not hold") if is_same else judgement


def _counts_at_once(evidence: Evidence) -> Judgement:
    """LOG-32."""
    rule = f"at most {INSTANTANEOUS_S * 1000:g} ms, as the client sees it"
    times = ((operation, evidence.contrast([("Redis", operation, 1.0)])) for operation in COUNT)
    judgement = all_of([Case(_word(operation), at_most(time, INSTANTANEOUS_S, rule)) for operation, time in times], unit="s")
    return replace(judgement, reason=f"{judgement.reason}; {rule}")


def _fails(evidence: Evidence) -> Judgement:
    """LOG-26. A variant that was lost while it was asked counts, too, so that the roles of the claim need not be there."""
    size = size_of(evidence.result)
    places = [Place(size or "", level, system, "Q2", "r1") for system in CLUSTERED for level in KEYED]
    variants = [variant for place in places if (variant := variant_at(variants_for(place), evidence.result)) is not None]
    of_variants = Evidence(evidence.result, {variant: variant for variant in variants}, evidence.metric)
    outcomes = {variant: _failed(of_variants, variant) for variant in variants}
    known = {variant: failed for variant, failed in outcomes.items() if failed is not None}
    if not known:
        return Judgement("not tested here", None, "no clustered Cassandra was asked for r1")
    failed = [variant for variant, has_failed in known.items() if has_failed]
    causes = "; ".join(f"{variant}: {_cause(of_variants, variant)}" for variant in failed)
    return Judgement(
        "holds" if failed else "does not hold",
        None,
        f"fetching r1 failed in {len(failed)} of {len(known)} variants{f' ({causes})' if causes else ''}",
    )


def _failed(evidence: Evidence, variant: str) -> bool | None:
    """Whether fetching the narrowest range failed at least once; None when it was not asked."""
    counts = evidence.counts(variant, FETCH[0])
    failure = evidence.result.failures.get(variant)
    if failure and failure.step == "running":
        return True
    return bool(counts["error"] + counts["timeout"]) if sum(counts.values()) else None


def _cause(evidence: Evidence, variant: str) -> str:
    failure = evidence.result.failures.get(variant)
    return evidence.first_error(variant, FETCH[0]) or (failure.cause if failure else "time limit")


def _memory(evidence: Evidence) -> Judgement:
    """LOG-36."""
    raw = RAW_BYTES_A_RECORD * _records(evidence)
    rule = f"within {NEAR:.0%} of six to seven"
    memory = evidence.size_bytes("Redis")
    judge = _once_within(6.0 / (1.0 + NEAR), 7.0 * (1.0 + NEAR), rule)
    return judge(
        memory / raw if memory else None,
        f"memory of all keys as Redis tells it, over {RAW_BYTES_A_RECORD} bytes a record, which the source's log has as text",
    )


def _none_wins_everywhere(evidence: Evidence) -> Judgement:
    """LOG-39: kinds of systems by the best that each has for an operation; a kind wins where it is certainly faster than all others."""
    kinds = {"relational": RELATIONAL, "Cassandra": CASSANDRA, "Redis": ("Redis", "Redis-SH")}
    roles = {
        kind: [
            name
            for name in dict.fromkeys(role(system, level) for system in systems for level in LEVELS)
            if name in evidence.roles
        ]
        for kind, systems in kinds.items()
    }
    operations = (LOOK_UP, *FETCH, *COUNT)
    winners = {operation: _winner(evidence, roles, operation) for operation in operations}
    won = {kind: [_word(operation) for operation in operations if winners[operation] == kind] for kind in kinds}
    of_each_kind = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in won.items() if names) or "none is certain"
    certain = [kind for kind, names in won.items() if names]
    is_one = len(certain) == 1 and len(won[certain[0]]) == len(operations)
    reason = f"certainly the fastest kind: {of_each_kind}; load times and sizes left out"
    return Judgement("holds" if len(certain) > 1 else "does not hold" if is_one else "inconclusive", None, reason)


def _winner(evidence: Evidence, roles: dict[str, list[str]], operation: str) -> str | None:
    """The kind of which one system is certainly faster than all systems of the other kinds."""
    for kind, own in roles.items():
        others = [other for another, names in roles.items() if another != kind for other in names]
        for name in own:
            contrasts = [evidence.contrast([(other, operation, 1.0), (name, operation, -1.0)]) for other in others]
            measured = [contrast for contrast in contrasts if contrast is not None]
            if measured and all(greater_than_one(contrast).word == "holds" for contrast in measured):
                return kind
    return None


def _counting_ratio(evidence: Evidence) -> Judgement:
    """LOG-34: the geometric mean over the ranges."""
    weight = 1.0 / len(COUNT)
    slow = [("DB-O key+value", operation, weight) for operation in COUNT]
    fast = [("DB-C key+value", operation, -weight) for operation in COUNT]
    judgement = about(evidence.contrast([*slow, *fast]), 4.0)
    return replace(judgement, reason=f"{judgement.reason}; geometric mean over the ranges")


_SLOWER_COUNT = [
    *_pairs_above("Redis", LEVELS, but=["Redis-SH"]),
    *((role("DB-O", level), role("DB-C", level)) for level in LEVELS),
    *((role(system, level), role(other, level)) for level in KEYED for system in CASSANDRA for other in RELATIONAL),
]

JUDGES: dict[str, Judge] = {
    "LOG-1": _loaded(_pairs_above("DB-C", ["none"]), note=OWN_LOADER),
    "LOG-2": _on_the_log(_ahead_then_behind),
    "LOG-3": _loaded(_of_levels(RELATIONAL, "key", "none")),
    "LOG-4": _loaded(_of_levels((*RELATIONAL, *CASSANDRA), "key+value", "key")),
    "LOG-5": _loaded(_pairs_above("CA-SH", ["key"]), note=OWN_LOADER),
    "LOG-6": _loaded(_reversed(_pairs_above("CA", ["key"])), note=OWN_LOADER),
    "LOG-7": _loaded([("CA key", "CA-SH key")], _ONCE_NEAR_FOUR, "both by SSTables; the source compared two loaders"),
    "LOG-8": _loaded(_pairs_above("Redis", ["key+value"], but=["Redis-SH"]), note=OWN_LOADER),
    "LOG-9": _loaded(
        [pair for system in CLUSTERED[1:] for pair in _reversed(_pairs_above(system, ["key+value"], but=CLUSTERED[1:]))],
        note=OWN_LOADER,
    ),
    "LOG-10": _loaded([(role("CA-SH-R3-S", level), role("CA-SH-R3-W", level)) for level in KEYED], _ONCE_NEAR_ONE, DURABILITY),
    "LOG-11": _loaded([("Redis-SH", "Redis")], _ONCE_NEAR_ONE),
    "LOG-12": _loader_wins,
    "LOG-13": _on_the_log(_at_operations([("CA-SH by writes", "CA-SH key")], (*FETCH[1:], *COUNT[1:]))),
    "LOG-14": _at_operations(_pairs_above("Redis", LEVELS, but=["Redis-SH"]), [LOOK_UP]),
    "LOG-15": _at_operations([("DB-O none", "DB-C none")], [LOOK_UP]),
    "LOG-16": _at_operations(_of_levels(RELATIONAL, "none", "key"), [LOOK_UP]),
    "LOG-17": _at_operations(_of_levels(("DB-C", "CA"), "key+value", "key"), [LOOK_UP], near_one),
    "LOG-18": _at_operations(_of_levels(("DB-O", *CLUSTERED), "key+value", "key"), [LOOK_UP]),
    "LOG-19": _at_operations(_pairs_above("DB-C", LEVELS), FETCH),
    "LOG-20": _on_the_log(_small_and_large),
    "LOG-21": _on_the_log(_at_operations([("Redis", "DB-O none")], FETCH[6:])),
    "LOG-22": _at_operations(
        [
            (role(system, level), role(other, level))
            for level in KEYED
            for system in CASSANDRA
            for other in (*RELATIONAL, "Redis")
        ],
        FETCH,
    ),
    "LOG-23": _at_operations(_reversed(_pairs_above("CA-SH-R3-S", KEYED)), (*FETCH, *COUNT)),
    "LOG-24": _at_operations(
        [(role(system, level), role("CA", level)) for system in CLUSTERED[:2] for level in KEYED], (*FETCH, *COUNT)
    ),
    "LOG-25": _at_operations([(role("CA-SH-R3-S", level), role("CA-SH-R3-W", level)) for level in KEYED], (*FETCH, *COUNT)),
    "LOG-26": _on_the_log(_fails),
    "LOG-27": _helps_one,
    "LOG-28": _on_the_log(_helps_small_alone),
    "LOG-29": _on_the_log(_at_operations(_of_levels(RELATIONAL, "key", "key+value"), COUNT)),
    "LOG-30": _at_operations(_of_levels(CASSANDRA, "key+value", "key"), (*FETCH, *COUNT), near_or_above_one),
    "LOG-31": _on_the_log(_never_scans),
    "LOG-32": _counts_at_once,
    "LOG-33": _at_operations(_SLOWER_COUNT, COUNT),
    "LOG-34": _counting_ratio,
    "LOG-35": _at_operations([("Redis-SH", "Redis")], (LOOK_UP, *FETCH, *COUNT), near_one),
    "LOG-36": _memory,
    "LOG-37": _sized([("DB-C key", "DB-O key"), ("CA-SH key", "DB-O key")]),
    "LOG-38": _sized(
        [(role(system, level), role("CA-SH", level)) for system in CLUSTERED[1:] for level in KEYED], _ONCE_NEAR_THREE
    ),
    "LOG-39": _none_wins_everywhere,
}
