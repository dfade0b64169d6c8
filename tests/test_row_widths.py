"""How wide rows of a schema are, on which data they can be so, and what is said where they are not."""

import pytest

from sensorbench.runner import Variant, VariantSpec, make_variants, parse_target
from sensorbench.schemas import RowWidth, SamplingInterval, Timelines, load_schema
from sensorbench.studies import STUDIES
from sensorbench.studies.widths import refused_widths
from tests.conftest import Cli

STEP_US = 1_000_000
# When the generated timelines begin, and how long they are in `sensor-timelines` and in `sensor-timelines-2`.
FIRST_US = 1_388_534_400 * STEP_US
SIX, TWO = 1_166_400, 6_998_400


def timelines(readings: int, scale: float = 1.0) -> Timelines:
    return Timelines(FIRST_US, round(readings * scale / 600) * 600, SamplingInterval(STEP_US, scale))


def variants(schema: str, *widths: str, url: str = "cassandra://db.example") -> list[Variant]:
    loaded = [
        load_schema(schema, operations="timelines", database="cassandra", parameters={"metadata": "own_table", "width": width})
        for width in widths
    ]
    specs = [VariantSpec(parse_target(url), schema, width) for schema, width in zip(loaded, widths, strict=True)]
    return make_variants(specs, None)  # type: ignore[arg-type]


def width_of(width: str) -> RowWidth:
    """Rows of the typed schema on the whole dataset."""
    (variant,) = variants("typed", width)
    found = variant.schema.on(SamplingInterval(STEP_US)).row_width()
    assert found is not None
    return found


ALL = ("5MB", "7MB", "10MB", "13MB", "15MB", "20MB")


@pytest.mark.parametrize("schema", ["typed", "batched"])
@pytest.mark.parametrize("scale", [1.0, 0.1, 0.03])
def test_the_timelines_of_the_study_hold_every_width(schema: str, scale: float) -> None:
    assert refused_widths(variants(schema, *ALL), timelines(TWO, scale)) == {}


@pytest.mark.parametrize(
    ("schema", "scale", "refused"),
    [
        ("typed", 1.0, {"20MB"}),
        # 7 MB of a timeline of 7.2 MB lie in two rows, since rows begin where the calendar says.
        ("batched", 1.0, {"7MB", "10MB", "13MB", "15MB", "20MB"}),
    ],
)
def test_shorter_timelines_do_not(schema: str, scale: float, refused: set[str]) -> None:
    found = refused_widths(variants(schema, *ALL), timelines(SIX, scale))
    assert {name.rpartition("-")[2] for name in found} == refused
    assert all("no --scale helps: use a --dataset with" in why for why in found.values())


def test_the_arithmetic_is_said() -> None:
    (why,) = refused_widths(variants("batched", "5MB", "20MB"), timelines(SIX)).values()
    assert why == (
        "rows of 20MB are 20 MB at scale 1, but the widest has 1,166,400 readings of 6.2 bytes, 7.23 MB. A timeline has 1,166,400 readings; only in "
        "6,451,200 there is always a whole row. Rows shrink with the data, so that no --scale helps: use a --dataset with 6,451,613 readings of "
        "each sensor"
    )
    (why,) = refused_widths(variants("typed", "5MB"), timelines(TWO, 0.002)).values()
    assert why == (
        "rows of 5MB are 10 kB at scale 0.002, but rows are a multiple of 600 readings of 25 bytes: the widest has 600, 15 kB. It takes --scale 0.03"
    )
    # From that scale on, it is not.
    assert refused_widths(variants("typed", "5MB"), timelines(TWO, 0.03)) == {}


def test_widths_that_are_alike_are_one() -> None:
    """Rows of 10,000 and 100,000 readings are the shortest possible ones where there are few data."""
    both = variants("typed", "10k", "100k")
    assert refused_widths(both, timelines(TWO, 0.05)) == {}
    (name,) = found = refused_widths(both, timelines(TWO, 0.005))
    assert name == "cassandra-typed-100k"
    assert found[name] == (
        "at scale 0.005 its rows of 100k have 600 readings, as many as the rows of 10k of cassandra-typed-10k; a larger --scale makes them differ"
    )
    others = [*variants("typed", "10k"), *variants("typed", "100k", url="cassandra://other.example")]
    assert refused_widths(others, timelines(TWO, 0.005)) == {}, "at another server they are another variant"


@pytest.mark.parametrize(
    ("reported", "is_right"),
    [(16_000_000, False), (17_200_000, True), (20_000_000, True), (24_000_000, True), (27_500_000, False)],
)
def test_the_reported_width_must_be_that_which_is_meant(reported: int, is_right: bool) -> None:
    problem = width_of("20MB").why_not_as_reported({"readings_0": reported, "rows_of_sensor": 60})
    assert (problem is None) == is_right
    if problem:
        assert "should be 20 MB wide, but the widest that the server reports has" in problem


def test_what_no_server_reports_is_no_problem() -> None:
    assert width_of("20MB").why_not_as_reported({}) is None
    assert width_of("100k").why_not_as_reported({"readings": 5}) is None


def test_the_declared_bytes_of_a_row_are_those_of_the_scale() -> None:
    (variant,) = variants("typed", "5MB")
    assert variant.schema.row_width() is None, "no dataset is known"
    width = variant.schema.on(SamplingInterval(STEP_US, 0.1)).row_width()
    assert width is not None
    assert (width.wanted_bytes, width.readings, width.parameters) == (500_000.0, 19_800, {"width"})
    of_readings = variant.schema.with_parameters({"width": "100k"}).on(SamplingInterval(STEP_US)).row_width()
    assert of_readings is not None
    assert of_readings.wanted_bytes is None


def test_a_study_runs_without_what_makes_no_sense(cli: Cli) -> None:
    """A dry run shows the arithmetic, of a comparison with widths that its data cannot have."""
    arguments = ("study", "run", "sensor-schemas", "--part", "write", "--dataset", "sensor-timelines", "--scale", "0.005")
    shown = cli(*arguments, "--dry-run", "--no-pilot", "--json")
    assert shown.exit_code == 0, shown.err
    assert shown.out.count("no --scale helps") >= 4


def test_a_ring_that_does_not_fit_into_memory_is_refused_with_numbers(cli: Cli) -> None:
    few = ("--part", "write", "--schema", "typed", "--scale", "0.001", "--no-open")
    refused = cli("study", "run", "sensor-schemas", "--nodes", "1000", *few)
    assert refused.exit_code == 2
    assert "the servers do not fit into memory: they take 1,523.7 GB before there are any data" in refused.err
    assert "use fewer --nodes" in refused.err


def test_nodes_are_for_clusters_that_are_started(cli: Cli) -> None:
    refused = cli("study", "run", "sensor-schemas", "--nodes", "3", "--target", "fjall", "--scale", "0.001", "--no-open")
    assert refused.exit_code == 2
    assert (
        "--nodes 3: no target is a cluster that is started for this run; study sensor-schemas has the systems cassandra_3"
        in refused.err
    )


def test_the_default_system_is_that_of_the_paper() -> None:
    study = STUDIES["sensor-schemas"].file
    system = study.systems[study.targets[0]]
    assert (system.nodes, system.settings["row_cache_size"]) == (3, "64MiB")
    assert system.options == "replication=3&write_consistency=quorum&read_consistency=one&compact=on"
