"""What the persistent-log study's claims say: of the paper's own figures, and of figures that are made up."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from sensorbench.claims import Claim, Evidence, Judgement, Verdict, measured
from sensorbench.claims import judged as judged_by_study
from sensorbench.claims.judgement import weakest
from sensorbench.claims.judging import decided
from sensorbench.dataset.machine_log import DATASETS, records_of
from sensorbench.results import ServerResources
from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.studies.log_analytics import LOG_ANALYTICS
from sensorbench.studies.log_analytics.claims import COUNT, FETCH, JUDGES, RAW_BYTES_A_RECORD
from sensorbench.studies.log_analytics.systems import LEVELS, SIZES
from tests.log_results import (
    CLAIMS,
    ROLES,
    LogEvidence,
    alike,
    fake_result,
    id_of,
    judged,
    of_paper,
    paper_figures,
    run_of_r1,
)

BY_RULES = [claim for claim in CLAIMS.values() if claim.rules]
# What the study's schemas cannot load: their claims say what is missing.
NO_ROLES = {"Redis by pipe", "Redis-SH by pipe"}


def roles_of(claim: Claim) -> set[str]:
    expressions = [of for rule in claim.rules for instance in rule.expanded() for of in instance.expressions]
    return {figure.arguments[0] for of in expressions for figure in of.figures}


def test_each_claim_is_there_whole() -> None:
    assert list(CLAIMS) == [f"LOG-{number}" for number in range(1, 43)]
    for claim in CLAIMS.values():
        assert claim.text, claim.id
        assert claim.sentence, claim.id
        assert claim.form, claim.id
        assert claim.published, claim.id
        assert set(claim.requires) <= ROLES.keys(), claim.id
        assert roles_of(claim) <= ROLES.keys() | (NO_ROLES if claim.blocked_by else set()), claim.id
        assert claim.min_scale, f"{claim.id}: every finding about loading or querying a log depends on how much there is"


@pytest.mark.parametrize("claim", BY_RULES, ids=lambda claim: claim.id)
def test_all_that_a_rule_speaks_of_is_known(claim: Claim) -> None:
    """Of everything that was measured at once, each comparison has a verdict."""
    loads = {role: {"readings": records_of("1GB")} for role in ROLES}
    judgement = judged(claim.id, {**alike([*ROLES, *NO_ROLES])}, loads={**loads, **{role: {"readings": 1} for role in NO_ROLES}})
    assert {cell.name for cell in judgement.cells if cell.verdict == "not tested"} == set()


# The paper's own figures. Its main tables; of loaders, the table that compares them (the main one has COPY's times for one node).
TABLES = {"LOG-12": "Appendix B"}
# Where they contradict the paper's sentence. LOG-26 is of what could not be executed, and has no figures.
CONTRADICTED: Mapping[str, list[str]] = {
    "LOG-6": ["6GB"], "LOG-17": ["6GB"], "LOG-18": ["1GB", "6GB"], "LOG-19": [*SIZES], "LOG-20": ["4GB"], "LOG-21": ["1GB"],
    "LOG-24": ["1GB", "2GB", "6GB"], "LOG-29": [*SIZES], "LOG-30": ["2GB"], "LOG-31": [*SIZES], "LOG-33": ["2GB", "6GB"],
    "LOG-35": ["1GB", "4GB"],
}  # fmt: skip
# Where they have the direction, and another magnitude than the paper says or has elsewhere.
ANOTHER_MAGNITUDE: Mapping[str, list[str]] = {
    "LOG-3": ["1GB"], "LOG-4": ["6GB"], "LOG-7": [*SIZES], "LOG-12": ["6GB"], "LOG-15": [*SIZES], "LOG-21": ["2GB"], "LOG-34": ["2GB"],
    "LOG-37": ["1GB", "2GB"],
}  # fmt: skip
# What the paper did not measure at a size, it cannot be judged by there: Redis did not fit, or its data are not shown.
NOTHING: Mapping[str, list[str]] = {
    **{key: ["6GB"] for key in ("LOG-2", "LOG-8", "LOG-14", "LOG-20", "LOG-21", "LOG-32", "LOG-35", "LOG-39")},
    **{key: ["4GB", "6GB"] for key in ("LOG-11", "LOG-36")},
    "LOG-13": ["1GB", "2GB", "6GB"],
    **{key: [*SIZES] for key in ("LOG-26", "LOG-40", "LOG-41", "LOG-42")},
}


def of_what_was_printed(judgement: Judgement) -> Verdict | None:
    """The verdict by the comparisons of which the paper has figures; None where it has none."""
    if judgement.verdict != "not tested":
        return judgement.verdict
    known = [cell.verdict for cell in judgement.cells if cell.verdict != "not tested"]
    return weakest(known) if known else None


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("claim", CLAIMS)
def test_the_papers_own_figures_agree_with_its_sentence_but_where_it_is_noted(claim: str, size: str) -> None:
    found = of_what_was_printed(of_paper(claim, size, TABLES.get(claim, "Appendix F")))
    if size in NOTHING.get(claim, []):
        assert found is None
    elif size in CONTRADICTED.get(claim, []):
        assert found == "not reproduced"
    else:
        assert found == ("partly reproduced" if size in ANOTHER_MAGNITUDE.get(claim, []) else "reproduced")


@pytest.mark.parametrize("claim", CONTRADICTED)
def test_a_claim_that_the_paper_contradicts_says_at_which_sizes(claim: str) -> None:
    note = CLAIMS[claim].note
    assert "Contradicted by the paper's own figures" in note
    assert all(size in note for size in CONTRADICTED[claim]) or "at every size" in note


@pytest.mark.parametrize(
    ("claim", "agree", "among"),
    [
        ("LOG-1", 9, 9), ("LOG-2", 3, 3), ("LOG-3", 8, 8), ("LOG-4", 24, 24), ("LOG-5", 25, 25), ("LOG-6", 24, 25), ("LOG-8", 18, 18),
        ("LOG-9", 42, 42), ("LOG-10", 8, 8), ("LOG-11", 2, 2), ("LOG-12", 12, 12), ("LOG-15", 4, 4), ("LOG-16", 8, 8), ("LOG-17", 7, 8),
        # Equal at 1GB, and by 1.6% at 6GB once, which is no difference that matters.
        ("LOG-18", 14, 16),
        # The claim that it is best is looked at against each system, which makes 27 cells of 21.
        ("LOG-20", 26, 27), ("LOG-21", 2, 3), ("LOG-36", 2, 2), ("LOG-37", 8, 8), ("LOG-38", 16, 16),
    ],
)  # fmt: skip
def test_the_paper_agrees_with_itself_in_as_many_cells_as_were_read(claim: str, agree: int, among: int) -> None:
    cells = [
        cell
        for size in SIZES
        for cell in of_paper(claim, size, TABLES.get(claim, "Appendix F")).cells
        if cell.verdict != "not tested"
    ]
    assert sum(cell.verdict in {"reproduced", "partly reproduced"} for cell in cells) == agree
    assert len(cells) == among


def test_two_loaders_are_not_compared() -> None:
    """The headline's times of Cassandra are of another loader than those of its cluster: with the same one it is not four times, and one node
    is not the slowest.
    """
    assert [of_paper("LOG-7", size, "Appendix B").verdict for size in SIZES] == ["partly reproduced"] * 4
    assert [of_paper("LOG-6", size, "Appendix B").verdict for size in SIZES] == ["not reproduced"] * 4


def test_loads_that_were_measured_once_have_the_interval_of_single_loads() -> None:
    """By the results' own rule, the paper's 7% at 2GB is no difference, and its ratio of 3.0 at 6GB is one."""

    class Once(LogEvidence):
        def values(self, figure: Any) -> Any:
            return Evidence.values(self, figure)

        def loaded_s(self, role: str) -> float | None:
            return self.figures.get((role, "load"))

    def verdicts(claim: str, size: str) -> dict[str, str]:
        found = decided(CLAIMS[claim], Once(paper_figures(size), fake_result(size)), JUDGES)
        return {cell.name: cell.verdict for cell in found.cells}

    assert verdicts("LOG-2", "2GB") == {"Redis over DB-O none": "inconclusive"}
    assert verdicts("LOG-1", "6GB")["DB-O none over DB-C"] == "reproduced"


# Figures that are made up: all are 1, but for those that are named.

Changes = list[tuple[str, float, tuple[str, ...]]]
LOAD, SIZE, Q1 = ("load",), ("size",), ("look_up",)
RAW = float(RAW_BYTES_A_RECORD * records_of("1GB"))


def changed(changes: Changes) -> dict[tuple[str, str], float]:
    return {**alike(), **{(role, what): value for role, value, of in changes for what in of}}


def at_levels(system: str, value: float, of: tuple[str, ...], levels: tuple[str, ...] = LEVELS) -> Changes:
    return [(f"{system} {level}", value, of) for level in levels]


REFUTING: dict[str, Changes] = {
    "LOG-1": [("DB-C none", 0.5, LOAD), ("Redis-SH", 0.4, LOAD)],
    "LOG-2": [("DB-O none", 2.0, LOAD)],
    "LOG-3": [("DB-C key", 3.5, LOAD), ("DB-O key", 0.9, LOAD)],
    "LOG-7": [("CA key", 0.5, LOAD)],
    "LOG-10": [("CA-SH-R3-S key+value", 2.0, LOAD)],
    "LOG-11": [("Redis-SH", 0.5, LOAD)],
    "LOG-12": [("CA by COPY", 3.0, LOAD), ("CA-SH by COPY", 2.0, LOAD)],
    "LOG-13": [("CA-SH by COPY", 1.4, FETCH), ("CA-SH by COPY", 0.5, COUNT)],
    "LOG-14": [("Redis", 0.1, Q1), ("DB-O key", 0.05, Q1)],
    "LOG-17": [("CA key+value", 1.5, Q1)],
    "LOG-20": [("Redis", 0.5, FETCH)],
    "LOG-23": [*at_levels("CA-SH-R3-S", 2.0, (*FETCH, *COUNT), LEVELS[1:]), ("Redis", 3.0, FETCH)],
    "LOG-25": [*at_levels("CA-SH-R3-S", 1.06, (*FETCH, *COUNT), LEVELS[1:])],
    "LOG-27": [("DB-O none", 1.4, (*FETCH, *COUNT)), ("DB-C none", 2.0, (*FETCH, *COUNT))],
    "LOG-28": [("DB-O key+value", 0.1, FETCH)],
    "LOG-30": [("CA key+value", 0.5, COUNT)],
    "LOG-31": [],
    "LOG-32": [("Redis", 0.00015, COUNT), ("Redis", 0.1, COUNT[6:])],
    "LOG-34": [("DB-O key+value", 0.5, COUNT)],
    "LOG-35": [("Redis-SH", 2.0, FETCH)],
    "LOG-36": [("Redis", 0.9 * RAW, SIZE)],
    "LOG-38": [],
    # Redis wins everywhere; and the relational databases lose nowhere.
    "LOG-39": [("Redis", 0.1, (*Q1, *FETCH)), ("Redis-SH", 0.1, FETCH)],
    "LOG-40": [("Redis hash only", 0.5, Q1)],
    "LOG-41": [("Redis AOF", 1.5, LOAD)],
}
HOLDING: dict[str, Changes] = {
    "LOG-7": [("CA key", 4.2, LOAD)],
    "LOG-17": [],
    "LOG-31": [(f"{system} key+value", 3.0, FETCH) for system in ("DB-C", "DB-O")],
    "LOG-36": [("Redis", 6.5 * RAW, SIZE)],
    "LOG-39": [("Redis", 0.1, Q1), ("DB-O key", 0.1, FETCH[6:])],
    "LOG-40": [],
    "LOG-41": [],
}


@pytest.mark.parametrize("claim", REFUTING)
def test_figures_to_the_contrary_refute_a_claim(claim: str) -> None:
    assert judged(claim, changed(REFUTING[claim])).verdict == "not reproduced"


@pytest.mark.parametrize("claim", HOLDING)
def test_figures_that_show_it_reproduce_a_claim(claim: str) -> None:
    assert judged(claim, changed(HOLDING[claim])).verdict == "reproduced"


# What these claim is that nothing differs.
OF_EQUALITY = {"LOG-10", "LOG-11", "LOG-17", "LOG-30", "LOG-35", "LOG-40", "LOG-41"}


@pytest.mark.parametrize("claim", [name for name in CLAIMS if name not in OF_EQUALITY and name != "LOG-26"])
def test_where_nothing_differs_no_difference_is_reproduced(claim: str) -> None:
    """A/A: everything takes equally long, and is equally large."""
    loads = {role: {"readings": records_of("1GB")} for role in [*ROLES, *NO_ROLES]}
    same = dict.fromkeys(alike([*ROLES, *NO_ROLES]), 0.01)
    assert judged(claim, same, loads=loads).verdict == "not reproduced"


# What is not a figure.


def test_a_plan_says_more_than_a_time() -> None:
    slower = changed(HOLDING["LOG-31"])
    plans = {"DB-O key+value": {operation: {"access": "scan"} for operation in FETCH}}
    judgement = judged("LOG-31", slower, plans=plans)
    assert judgement.verdict == "not reproduced"
    assert "DB-O key+value, Q2 r5: scan" in judgement.reason
    plans["DB-O key+value"] = {operation: {"access": "index log_value"} for operation in FETCH}
    assert judged("LOG-31", slower, plans=plans).verdict == "reproduced"
    assert judged("LOG-31", alike(["DB-O key", "DB-O key+value"]), plans=plans).verdict == "not tested", "DB-C is claimed, too"


CLUSTERS = ["cassandra_4/source/key", "cassandra_4_rf3_one/source/key", "cassandra_4_rf3_all/source/key"]


@pytest.mark.parametrize(
    ("run", "failure", "verdict", "described"),
    [
        (run_of_r1("too many tombstones", error=3), None, "reproduced", "too many tombstones"),
        (run_of_r1(), {"step": "running", "cause": "a node was lost"}, "reproduced", "a node was lost"),
        (run_of_r1(timeout=1, ok=2), None, "inconclusive", "time limit"),
        (run_of_r1(error=2), None, "inconclusive", "0 of 1"),
        (run_of_r1(ok=3), None, "not reproduced", "each did in 1"),
        (run_of_r1(), {"step": "loading", "cause": "no space"}, "not tested", "not measured"),
    ],
)
def test_a_failure_is_evidence_of_failing(run: Any, failure: Any, verdict: Verdict, described: str) -> None:
    of_all = {id_of(name): [run] for name in CLUSTERS}
    failures = {variant: failure for variant in of_all if failure}
    judgement = JUDGES["LOG-26"](Evidence(fake_result("4GB", variants=CLUSTERS, runs=of_all, failures=failures), {}, "mean"))
    assert judgement.verdict == verdict
    assert {described in cell.reason for cell in judgement.cells} == {True}


def test_each_cluster_must_fail() -> None:
    runs = {id_of(name): [run_of_r1(timeout=3)] for name in CLUSTERS}
    runs[id_of(CLUSTERS[0])] = [run_of_r1(ok=3)]
    judgement = JUDGES["LOG-26"](Evidence(fake_result("4GB", variants=CLUSTERS, runs=runs), {}, "mean"))
    assert judgement.verdict == "not reproduced"
    assert [cell.verdict for cell in judgement.cells] == ["not reproduced", "reproduced", "reproduced"]


def test_a_system_that_was_not_measured_leaves_a_claim_untested_unless_another_refutes_it() -> None:
    figures = {**alike(["Redis", "DB-O key+value", "CA key+value"]), ("Redis", "load"): 0.3}
    judgement = judged("LOG-8", figures)
    assert judgement.verdict == "not tested"
    assert "2 reproduced" in judgement.reason
    assert judged("LOG-8", {**figures, ("CA key+value", "load"): 0.1}).verdict == "not reproduced"


# What stands between a claim and its verdict: scale, dataset, substitutes.


def by_study(
    claim: str,
    variants: list[str],
    *,
    dataset: str = "machine-log-1gb",
    records: int = 20_000_000,
    size_bytes: int | None = None,
    resources: ServerResources = ServerResources(),
    answers_equal: bool = True,
) -> Any:
    """What the study says of a claim, of results in which each variant has complete runs without any operation."""
    run = SimpleNamespace(
        state="complete", manifest=SimpleNamespace(phases=["measure"], totals=None, repetition=1), histograms={}, path=None
    )
    loads = {id_of(name): {"size": {"total_bytes": size_bytes}} for name in variants} if size_bytes else {}
    result = fake_result(dataset, variants=variants, records=records, runs={id_of(name): [run] for name in variants}, loads=loads)
    result.manifest.environment["servers"] = {variant.url: {"memory_bytes": 4 << 30} for variant in result.manifest.variants}
    result.manifest.plan.resources = resources
    summary = ComparisonSummary.model_construct(answers_equal=answers_equal)
    by = measured(LOG_ANALYTICS, {"": result}, {"": summary})
    return judged_by_study(CLAIMS[claim], LOG_ANALYTICS, list(by.values()))


MARIADB = [f"mariadb/relational/{level}" for level in ("none", "key", "key_value")]
POSTGRESQL = [f"postgresql/relational/{level}" for level in ("none", "key", "key_value")]
CASSANDRA = [f"cassandra/source/{level}" for level in ("none", "key", "key_value")]
ODBC = [f"odbc/relational/{level}" for level in ("none", "key", "key_value")]


def test_a_substitute_does_not_judge_a_claim_about_the_papers_product() -> None:
    found = by_study("LOG-15", [*MARIADB, *POSTGRESQL])
    assert found.verdict == "not tested"
    assert "commercial product: postgresql-relational-none cannot judge it" in found.reason
    assert "cannot judge" not in by_study("LOG-1", [*MARIADB, *ODBC]).reason
    assert "cannot judge" not in by_study("LOG-3", [*MARIADB, *POSTGRESQL]).reason


def test_claims_about_memory_are_not_tested_where_each_server_has_what_the_lab_gives_it() -> None:
    systems = [*ODBC, *CASSANDRA]
    found = by_study("LOG-17", systems, size_bytes=5 << 30)
    assert found.verdict == "not tested"
    assert "depends on the memory that each server has for data: give every server the same with --server-memory" in found.reason
    # What comes next are the answers.
    alike = by_study("LOG-17", systems, size_bytes=5 << 30, resources=ServerResources(memory_bytes=4 << 30), answers_equal=False)
    assert alike.reason == "the databases did not give equal answers"


def test_small_logs_are_not_judged() -> None:
    systems = ["cassandra/source/key", "cassandra_4/source/key"]
    small = by_study("LOG-7", systems, records=9_999_999)
    assert small.verdict == "below minimum scale"
    assert "at least 10,000,000" in small.reason
    assert by_study("LOG-7", systems, records=10_000_000).verdict == "not tested", "nothing says how long they loaded"
    queries = by_study("LOG-16", [*MARIADB, *ODBC], records=999_999)
    assert queries.verdict == "below minimum scale"


@pytest.mark.parametrize("claim", ["LOG-2", "LOG-13", "LOG-20", "LOG-21", "LOG-26", "LOG-28", "LOG-29", "LOG-31"])
def test_claims_about_ranges_or_sizes_of_the_log_are_not_tested_on_other_data(claim: str) -> None:
    everything = [names[0] for names in ROLES.values()]
    found = by_study(claim, list(dict.fromkeys(everything)), dataset="azure-vm-noise", records=200_000_000)
    assert found.verdict == "not tested"
    assert "which azure-vm-noise does not have" in found.reason


def test_a_claim_that_says_nothing_of_a_size_is_not_tested_there() -> None:
    assert judged("LOG-2", {**alike(), ("Redis", "load"): 0.5}, size="4GB").verdict == "reproduced"
    assert judged("LOG-2", alike(), size="6GB").verdict == "not tested"
    assert set(CLAIMS["LOG-26"].datasets) == {DATASETS["4GB"], DATASETS["6GB"]}


def test_bytes_over_memory_are_those_of_the_smallest_variant_over_what_its_server_may_use() -> None:
    names = ["mariadb/relational/key", "redis/source", "postgresql/relational/key"]
    loads = {id_of(name): {"size": {"total_bytes": size}} for name, size in zip(names, (4e9, 6e9, 1e9), strict=True)}
    result = fake_result(variants=names, loads=loads)
    of_server = {"mariadb": {"memory_bytes": 8_000_000_000}, "redis": {"memory_bytes": None}}
    result.manifest.environment.update(memory_bytes=16_000_000_000, servers=of_server)

    def scale(*roles: str) -> float | None:
        return Evidence(result, {name: id_of(name) for name in roles}, "mean").scale("bytes_over_memory")

    assert scale(names[0]) == 0.5
    assert scale(names[1]) == 0.375, "without a limit, a server has the machine's memory"
    assert scale(*names) == 0.375, "what runs elsewhere does not say how much memory it has"
    assert scale(names[2]) is None
    result.manifest.environment.update(memory_limit_bytes=12_000_000_000)
    assert scale(names[1]) == 0.5
