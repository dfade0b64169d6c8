"""The claims of the study of Cassandra's settings: on the paper's own figures, on the contrary, where nothing differs, and by simulation."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from sensorbench.benchmarks.factors.cells import cells_of
from sensorbench.benchmarks.factors.scaling import scaled
from sensorbench.claims import Claim, Expression
from sensorbench.claims.simulated import simulated_claims
from sensorbench.report.load_curves import load_curves
from sensorbench.results.factors import FILLED, CellMeasurement, FactorsResult, FilledFigures, StepFigures, Where
from sensorbench.results.manifest import Process, now
from sensorbench.results.page import Chart, Grid
from sensorbench.results.planned import FactorsManifest, PlannedCell, PlannedFactors
from sensorbench.results.summary.stress import Latencies
from sensorbench.studies import FACTOR_STUDIES
from sensorbench.studies.published import published_of
from tests.test_factors import filled_of, step_of

TUNING = FACTOR_STUDIES["cassandra-tuning"]
CLAIMS = {claim.id: claim for claim in TUNING.claims}
# The figures of a level under a load: of filling, or of a step.
Figures = Callable[[str, str, str, Where], dict[str, Any]]


def made_up(figures: Figures, *, rounds: int = 3, scale: float = 0.02, parts: list[str] | None = None) -> FactorsResult:
    """Results of the study with these figures of each level, each round a little different."""
    file = TUNING.file
    cells = cells_of(file, parts or list(file.parts), scaled(file, scale, 60.0))
    measurements = {
        cell.id: [measured(cell.id, cell.load, cell.levels, number, figures) for number in range(1, rounds + 1)]
        for cell in cells.values()
    }
    manifest = FactorsManifest(
        title=file.title,
        process=Process.this(),
        created=now(),
        status="complete",
        version="0",
        command=[],
        variants=[],
        environment={"processor": "p", "processors_allowed": 2, "memory_bytes": 1, "system": "s", "kernel": "k"},
        plan=PlannedFactors(
            workload={"records": 1, "concurrency": 1, "fields": 5, "field_bytes": 34, "distribution": "zipfian"},
            name=TUNING.name,
            target=file.database,
            nodes=3,
            parts=parts or list(file.parts),
            cells={
                cell.id: PlannedCell(load=cell.load, settings=cell.settings, apart=cell.apart, levels=cell.levels)
                for cell in cells.values()
            },
            scale=scale,
            sizes={},
            step_s=60.0,
            rounds=rounds,
            seed=1,
            rates={name: [100.0 * number for number in range(1, len(load.shares) + 1)] for name, load in file.loads.items()},
        ),
    )
    return FactorsResult(Path(), manifest, measurements)


def measured(cell: str, load: str, levels: list[tuple[str, str]], number: int, figures: Figures) -> CellMeasurement:
    def noisy(where: Where) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for part, level in levels:
            found |= figures(part, level, load, where)
        return {key: value * (1 + 0.002 * number) if isinstance(value, float) else value for key, value in found.items()}

    steps = len(TUNING.file.loads[load].shares) * (2 if load == "restart" else 1)
    of_steps = [step_of(1.0, noisy(step)) for step in range(steps)]
    return CellMeasurement(
        cell=cell, round=number, outcome="measured", seed=1, took_s=1.0, filled=filled_of(noisy(FILLED)), steps=of_steps
    )


def _printed() -> dict[tuple[str, str, str, Where], dict[str, float]]:
    """What the paper's tables printed, by part, level, load and place."""
    published = published_of(TUNING.name)
    assert published is not None
    found: dict[tuple[str, str, str, Where], dict[str, float]] = {}
    for row in published.rows:
        if row.figure and row.value is not None and row.printed.figure_or_table.startswith("Table"):
            (figure,) = Expression.parse(row.figure).figures
            load, part, level, where = figure.arguments
            place: Where = FILLED if where == FILLED else int(where)
            found.setdefault((part, level, load, place), {}).setdefault(figure.quantity, row.value)
    return found


PRINTED = _printed()


def published_figures(part: str, level: str, load: str, where: Where) -> dict[str, Any]:
    """The figures that the paper printed for a level."""
    return dict(PRINTED.get((part, level, load, where), {}))


def of_all_steps(figures: Callable[[str, str], dict[str, Any]]) -> Figures:
    """Figures that are the same in all steps and while filling."""
    return lambda part, level, load, where: figures(part, level)


def verdicts(result: FactorsResult) -> dict[str, str]:
    return {claim.id: claim.verdict for claim in TUNING.summarise(result).claims}


def verdict_on(claim: Claim, figures: Figures, **how: Any) -> str:
    """What is said of a claim where its parts alone were run, so that no level shares its cell with one of another part."""
    return verdicts(made_up(figures, parts=claim.parts or None, **how))[claim.id]


def drawn(result: FactorsResult) -> dict[str, Chart]:
    """The charts over load averages and rates that the report has, by their names."""
    section = load_curves(TUNING.summarise(result))
    grids = [block for block in section.blocks if isinstance(block, Grid)] if section else []
    return {block.name: block for grid in grids for block in grid.blocks if isinstance(block, Chart)}


def points(chart: Chart, level: str) -> list[tuple[float, float]]:
    """The points of the line of a level, in the order in which the line joins them."""
    (values,) = chart.specification["datasets"].values()
    rows = [row for row in values if row["level"] == level]
    return [(row["x"], row["y"]) for row in sorted(rows, key=lambda row: row["step"])]


def caching(part: str, level: str, load: str, where: Where) -> dict[str, Any]:
    """Figures in which each step has its own; so has the load average, which falls."""
    step = 0 if where == FILLED else int(where)
    return {"hit_rate": 0.1 + 0.1 * step, "disk_read_per_s": 1e6 * (1 + step), "steady_s": 1.0 + step, "load_average": 9.0 - step}


def test_the_papers_figures_are_drawn_over_the_load_and_over_the_rate() -> None:
    charts = drawn(made_up(caching, rounds=1, parts=["key-cache-size", "key-cache-save-period", "flush-writers"]))
    figures = ("hit_rate", "disk_read_per_s", "steady_s")
    shown = ("key-cache-size-{}", "key-cache-save-period-{}", "key-cache-save-period-{}-again")
    assert charts.keys() == {
        f"load-{part.format(figure)}-{over}" for part in shown for figure in figures for over in ("published", "load", "rate")
    }
    # Table 4: load and hit rate at 10,000, 20,000 and 30,000 requests per second.
    published = charts["load-key-cache-size-hit_rate-published"]
    assert points(published, "500 MB") == [(8.15, 0.368), (12.77, 0.701), (24.44, 0.82)]
    assert points(published, "300 MB") == []
    assert points(charts["load-key-cache-save-period-steady_s-again-published"], "4 h") == [
        (7.09, 480),
        (8.37, 900),
        (19.72, 1920),
    ]
    for level in ("300 MB", "1000 MB"):
        here = points(charts["load-key-cache-size-hit_rate-load"], level)
        assert here == [(pytest.approx(x * 1.002), pytest.approx(y * 1.002)) for x, y in ((9.0, 0.1), (8.0, 0.2), (7.0, 0.3))]
    again = points(charts["load-key-cache-save-period-disk_read_per_s-again-load"], "5.5 h")
    assert again == [(pytest.approx(x * 1.002), pytest.approx(y * 1.002)) for x, y in ((6.0, 4e6), (5.0, 5e6), (4.0, 6e6))]
    assert [y for _, y in points(charts["load-key-cache-size-steady_s-rate"], "92 MB")] == pytest.approx([1.002, 2.004, 3.006])


def test_results_without_a_load_average_are_drawn_over_the_rate_alone() -> None:
    def before(*of: Any) -> dict[str, Any]:
        return {name: value for name, value in caching(*of).items() if name != "load_average"}

    result = made_up(before, rounds=1, parts=["key-cache-size"])
    assert {name.rsplit("-", 1)[1] for name in drawn(result)} == {"published", "rate"}
    assert "from before the load average was sampled" in str(load_curves(TUNING.summarise(result)))
    assert load_curves(TUNING.summarise(made_up(caching, rounds=1, parts=["flush-writers"]))) is None


def test_what_the_source_printed_is_read_with_its_units() -> None:
    assert PRINTED["key-cache-size", "1000 MB", "read", 2]["hit_rate"] == 0.920
    assert PRINTED["key-cache-save-period", "5 h", "restart", 5]["steady_s"] == 18 * 60
    assert PRINTED["flush-writers", "10", "write", "filled"]["took_s"] == 24 * 60 + 27
    assert PRINTED["draft", "draft", "mixed", 0]["disk_bytes"] == 47e9
    levels = {(name, level.name) for name, part in TUNING.file.parts.items() for level in part.levels}
    assert {(part, level) for part, level, _, _ in PRINTED} <= levels


def test_the_papers_own_figures_have_a_ratio_of_1_to_it() -> None:
    """What is measured of each printed value is what its formula says, in the printed unit."""
    summary = TUNING.summarise(made_up(published_figures, parts=["flush-writers"]))
    cells = {(table.title, cell.row, cell.column): cell for table in summary.published for cell in table.cells}
    table = "Tables 9 to 14: memtables, flush writers and the cleanup threshold"
    of_part = [cell for place, cell in cells.items() if place[0] == table and "flush_writers" in place[1]]
    assert len(of_part) == 3 * 9
    assert all(cell.state == "measured" and cell.ratio == pytest.approx(1.0, rel=0.01) for cell in of_part)
    other = cells[table, "memtable_allocation_type heap_buffers", "write-latency"]
    assert (other.state, other.measured) == ("not run", None)
    assert other.why.startswith("part memtable-allocation was not run")
    contradiction = cells[
        "Section 5.2, in the text: memtables, flush writers and the cleanup threshold", "memtable_flush_writers 4", "sstables"
    ]
    assert (contradiction.printed, contradiction.value) == ("831.19", 831.19)


def test_claims_speak_of_levels_and_figures_that_there_are() -> None:
    assert list(CLAIMS) == [f"TUN-{number}" for number in range(1, 33)]
    for claim in CLAIMS.values():
        assert claim.sentence
        assert not claim.judged_in_python
        for instance in (instance for rule in claim.rules for instance in rule.expanded()):
            for figure in (figure for expression in instance.expressions for figure in expression.figures):
                if figure.quantity in TUNING.quantities:
                    continue
                load, part, level, where, *_ = figure.arguments
                assert part in claim.parts, figure
                assert load in TUNING.file.parts[part].loads, figure
                assert level in {level.name for level in TUNING.file.parts[part].levels}, figure
                of = FilledFigures if where == FILLED else StepFigures
                assert figure.quantity in {*of.model_fields, "mean"}, figure


def place_of(part: str, level: str) -> float:
    """The number of a level among those of its part, from 1."""
    return 1.0 + [known.name for known in TUNING.file.parts[part].levels].index(level)


# The text says the opposite of its own table.
AGAINST_ITS_TABLE = {"TUN-9", "TUN-18", "TUN-20", "TUN-22", "TUN-32"}
# The paper gives no figures.
WITHOUT_FIGURES = {"TUN-6", "TUN-23", "TUN-31"}
SAYING_EQUAL = {"TUN-8", "TUN-10", "TUN-23", "TUN-32"}


@pytest.mark.parametrize(
    "claim", [claim for claim in CLAIMS.values() if claim.id not in WITHOUT_FIGURES], ids=lambda claim: claim.id
)
def test_what_the_source_printed_gives_the_verdicts_that_its_own_tables_do(claim: Claim) -> None:
    expected = "not reproduced" if claim.id in AGAINST_ITS_TABLE else "reproduced"
    assert verdict_on(claim, published_figures) == expected


@pytest.mark.parametrize(
    "claim", [claim for claim in CLAIMS.values() if claim.id not in WITHOUT_FIGURES], ids=lambda claim: claim.id
)
def test_the_opposite_of_a_claim_is_not_reproduced(claim: Claim) -> None:
    def reversed_figures(*place: Any) -> dict[str, Any]:
        return {key: 1.0 / value**3 if value else value for key, value in published_figures(*place).items()}

    if claim.id in AGAINST_ITS_TABLE - SAYING_EQUAL:
        assert verdict_on(claim, reversed_figures) in {"reproduced", "partly reproduced"}
    elif claim.id not in SAYING_EQUAL:
        assert verdict_on(claim, reversed_figures) == "not reproduced"
    else:
        assert verdict_on(claim, of_all_steps(lambda part, level: dict.fromkeys(ALL, place_of(part, level)))) == "not reproduced"


ALL = ("server_cpu", "hit_rate", "steady_s", "p99_of_offered_s", "per_s", "took_s", "table_bytes", "memtable_bytes", "disk_bytes", "sstables",
    "mean_s", "compacted_per_s", "disk_read_per_s", "disk_written_per_s")  # fmt: skip


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_where_levels_do_not_differ_no_difference_is_reproduced(claim: Claim) -> None:
    alike = {
        **dict.fromkeys(ALL, 1.0),
        "by_operation": {"update": Latencies.model_validate(dict.fromkeys(Latencies.model_fields, 1.0))},
    }
    verdict = verdict_on(claim, of_all_steps(lambda part, level: alike))
    if claim.id in SAYING_EQUAL:
        assert verdict == "reproduced"
    else:
        assert verdict == "not tested" if claim.id == "TUN-31" else verdict == "not reproduced"


# At ten repetitions, where rounds vary by 10%: what the paper printed is closer to nothing than that.
UNDECIDABLE = {f"TUN-{number}" for number in (1, 5, 7, 8, 11, 12, 15, 16, 22, 24, 27, 28, 29, 30, 32)}


def test_claims_that_ten_repetitions_do_not_decide_are_known() -> None:
    """By the simulation that the documents show (`make bench-claims`)."""
    known = simulated_claims().claims
    judged_by_rules = [claim.id for claim in CLAIMS.values() if claim.rules]
    assert {name for name in judged_by_rules if known[name].repetitions_at(0.10) is None} == UNDECIDABLE


def test_at_most_one_of_two_contradictory_claims_is_reproduced() -> None:
    """Whichever of the types writes faster, and by how much."""
    for factor in (1.0, 1.01, 1.019, 1.021, 1.03, 1.05, 1.1, 2.0):
        rates = {"heap buffers": factor**2, "off-heap buffers": factor, "off-heap objects": 1.0}

        def figures(part: str, level: str, rates: Mapping[str, float] = rates) -> dict[str, Any]:
            return {"per_s": rates.get(level, 1.0)}

        found = verdicts(made_up(of_all_steps(figures), parts=["memtable-allocation"]))
        both = [found[name] in {"reproduced", "partly reproduced"} for name in ("TUN-11", "TUN-32")]
        assert both == [factor > 1.02, factor == 1.0], factor


def test_the_draft_is_judged_by_load_and_disk() -> None:
    names = ("disk_read_per_s", "disk_written_per_s", "hit_rate", "steady_s")

    def figures(server_cpu: float, other: float, **more: float) -> Figures:
        of_draft = {
            **dict.fromkeys(names, other),
            "server_cpu": server_cpu,
            "table_bytes": 1 / other,
            "disk_bytes": 1 / other,
            **more,
        }
        return of_all_steps(lambda part, level: of_draft if level == "draft" else dict.fromkeys(of_draft, 1.0))

    of_draft = [f"TUN-{number}" for number in range(24, 31)]
    much, little = verdicts(made_up(figures(2.0, 1.5))), verdicts(made_up(figures(0.5, 1.5)))
    partly, contrary = "partly reproduced", "not reproduced"
    assert [much[name] for name in of_draft] == [partly, partly, partly, contrary, partly, contrary, partly]
    assert [little[name] for name in of_draft] == [partly, contrary, partly, "reproduced", partly, contrary, partly]
    nearly = verdicts(made_up(figures(1.08, 1.38, hit_rate=1.21)))
    assert nearly["TUN-29"] == "reproduced"
    assert verdicts(made_up(figures(1.08, 1.38, hit_rate=1.0)))["TUN-29"] == contrary
    assert verdicts(made_up(figures(1.08, 1.38, hit_rate=1.21, disk_read_per_s=0.0)))["TUN-29"] == "not tested"


def test_the_best_compromise_is_the_one_that_beats_all_others() -> None:
    def figures(best: str) -> Figures:
        return of_all_steps(lambda part, level: {"p99_of_offered_s": 0.01 if level == best else 0.02})

    assert verdict_on(CLAIMS["TUN-6"], figures("500 MB")) == "reproduced"
    assert verdict_on(CLAIMS["TUN-6"], figures("700 MB")) == "not reproduced"
    assert verdict_on(CLAIMS["TUN-6"], figures("none")) == "not reproduced", "where all are alike, none is the best"


def test_save_periods_are_judged_at_once_and_after_restarts() -> None:
    def figures(part: str, level: str) -> dict[str, Any]:
        return {"steady_s": {"1 h": 5.0, "3 h": 60.0, "4 h": 40.0, "5 h": 20.0}.get(level, 1.0), "hit_rate": 0.8}

    found = verdicts(made_up(of_all_steps(figures)))
    # Twice as short is more than was printed.
    assert {name: found[name] for name in ("TUN-7", "TUN-8", "TUN-9")} == {
        "TUN-7": "partly reproduced", "TUN-8": "reproduced", "TUN-9": "reproduced"
    }  # fmt: skip

    def at_once_alone(part: str, level: str, load: str, where: Where) -> dict[str, Any]:
        return {"steady_s": 20.0 if level == "5 h" and where in (0, 1, 2) else 40.0}

    assert verdict_on(CLAIMS["TUN-7"], at_once_alone) == "not reproduced"
    found = verdicts(made_up(of_all_steps(lambda part, level: {"hit_rate": 0.9 if level == "5 h" else 0.8})))
    assert found["TUN-8"] == "not reproduced"
    # No hit rate became steady.
    assert found["TUN-7"] == found["TUN-9"] == "not tested"


def test_one_round_is_inconclusive_and_a_small_scale_is_below_the_minimum() -> None:
    assert {verdict_on(CLAIMS[name], published_figures, rounds=1) for name in ("TUN-1", "TUN-5", "TUN-13")} == {"inconclusive"}
    small = verdicts(made_up(published_figures, scale=0.001))
    assert {small[name] for name in ("TUN-1", "TUN-2", "TUN-7", "TUN-13", "TUN-24")} == {"below minimum scale"}
    assert verdict_on(CLAIMS["TUN-31"], of_all_steps(together), scale=0.001) == "reproduced"


def test_parts_that_were_not_run_and_disks_that_were_not_read_are_not_tested() -> None:
    nothing_read = of_all_steps(lambda *_: {"disk_read_per_s": 0.0, "server_cpu": 1.0})
    summary = TUNING.summarise(made_up(nothing_read, parts=["key-cache-size"]))
    claims = {claim.id: claim for claim in summary.claims}
    assert claims["TUN-13"].verdict == claims["TUN-3"].verdict == "not tested"
    assert claims["TUN-13"].reason == "part flush-writers was not run"
    assert {"read nothing from the disk" in cell.reason for cell in claims["TUN-3"].cells} == {True}
    assert "memory" in {caveat.kind for caveat in summary.warnings}


def together(part: str, level: str) -> dict[str, Any]:
    """Load and disk throughput of a level, which grow together."""
    place = sum(map(ord, part + level)) / 1e3
    return {"server_cpu": place, "disk_read_per_s": place * 1e6, "disk_written_per_s": 1.0}


def test_load_and_disk_grow_together_where_they_do() -> None:
    def against(part: str, level: str) -> dict[str, Any]:
        return {**together(part, level), "disk_read_per_s": 1e6 / together(part, level)["server_cpu"]}

    def unrelated(part: str, level: str) -> dict[str, Any]:
        return {**together(part, level), "disk_read_per_s": 1.0 + sum(map(ord, part + level)) * 7919 % 101}

    claim = CLAIMS["TUN-31"]
    assert verdict_on(claim, of_all_steps(together)) == "reproduced"
    assert verdict_on(claim, of_all_steps(against)) == verdict_on(claim, of_all_steps(unrelated)) == "not reproduced"
    assert verdict_on(claim, of_all_steps(lambda *_: {})) == "not tested"
