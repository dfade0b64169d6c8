"""The sensor-schema study: its layouts, what its claims say of made-up figures, and a run of it on embedded databases."""

import json
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import cast

import pytest

from sensorbench.claims.claim import Judgement
from sensorbench.claims.evidence import Evidence
from sensorbench.studies.sensor_schemas import SENSOR_SCHEMAS
from sensorbench.studies.sensor_schemas.claims import BATCHES, JUDGES, LENGTHS, NEW_RANGE, READ, TABLES, WRITE, readings
from sensorbench.studies.sensor_schemas.sections import published
from tests.conftest import Cli
from tests.fake_evidence import FakeEvidence, Figures

ROLES = SENSOR_SCHEMAS.file.roles.published


def judged(
    claim: str,
    figures: Mapping[str, float],
    *,
    operation: str = WRITE,
    timeouts: Mapping[tuple[str, str, str], int] | None = None,
    rows: Mapping[str, int] | None = None,
) -> Judgement:
    """What a claim says of latencies by role, or by `part role`, in its first part and operation where nothing else is said."""
    part = next(candidate for candidate in SENSOR_SCHEMAS.claims if candidate.id == claim).parts[0]
    whole = {(part, role, operation): latency for role, latency in figures.items()}
    return judged_of(claim, whole, timeouts or {}, rows or {})


def judged_of(
    claim: str, figures: Figures, timeouts: Mapping[tuple[str, str, str], int] = {}, rows: Mapping[str, int] = {}
) -> Judgement:
    part = next(candidate for candidate in SENSOR_SCHEMAS.claims if candidate.id == claim).parts[0]
    return JUDGES[claim](cast("Evidence", FakeEvidence(part, figures, timeouts, rows)))


def test_every_claim_of_the_source_is_there() -> None:
    expected = [f"SCH-{number}" for number in range(1, 29)] + [f"SCH-U{number}" for number in range(1, 7)]
    assert [claim.id for claim in SENSOR_SCHEMAS.claims] == expected
    assert {claim.id for claim in SENSOR_SCHEMAS.claims if claim.blocked_by} == {"SCH-7"}


def test_every_role_is_a_setting_of_its_parts() -> None:
    """A role that no part measures would leave its claims untested for ever."""
    systems = {name: system.database for name, system in SENSOR_SCHEMAS.file.systems.items()}
    measured = {
        part: {
            "/".join(filter(None, [system, layout.schema_, label]))
            for system, database in systems.items()
            for layout in grid.schemas.get(database, [])
            for _, label in layout.labelled_parameters()
            if layout.systems is None or system in layout.systems
        }
        for part, grid in SENSOR_SCHEMAS.file.parts.items()
    }
    for claim in SENSOR_SCHEMAS.claims:
        for part, role in product(claim.parts, claim.requires):
            assert set(ROLES[role]) & measured[part], f"{claim.id}: {role} in {part}"
    for name, role in {(figure["part"], figure["role"]) for figure in published()}:
        assert set(ROLES[role]) & measured[name], role


def test_published_figures_are_those_that_were_printed() -> None:
    values = {(figure["role"], figure["operation"]): float(figure["value"]) for figure in published()}
    assert values["TV 5MB", WRITE] / values["TV 15MB", WRITE] == pytest.approx(62_000 / 52_000)
    assert values["T2", WRITE] / values["T1", WRITE] == pytest.approx(1.6)


def test_readings_of_an_operation_follow_from_the_role() -> None:
    assert [readings(role) for role in ("TV M1", "BA M2", "BA b50", "BA M1", "BA b300")] == [1, 150, 50, 150, 300]


@pytest.mark.parametrize(("narrow", "word"), [(2.0, "holds"), (0.5, "does not hold"), (1.0, "no difference seen")])
def test_wide_rows(narrow: float, word: str) -> None:
    figures = {
        ("ranges", role, LENGTHS[length]): latency for role, latency in (("W 10k", narrow), ("W 100k", 1.0)) for length in LENGTHS
    }
    assert judged_of("SCH-1", figures).word == word


def test_long_ranges_time_out_or_not() -> None:
    figures = {("ranges", role, LENGTHS[length]): 1.0 for role in ("W 10k", "W 100k") for length in LENGTHS}
    too_long = [("W 10k", 50_000), ("W 10k", 100_000), ("W 100k", 100_000)]
    timeouts = {("ranges", role, LENGTHS[length]): 100 for role, length in too_long}
    assert judged_of("SCH-2", figures, timeouts).word == "holds"
    assert judged_of("SCH-2", figures).word == "does not hold"


def test_replicas_and_acknowledgements() -> None:
    assert judged("SCH-3", {"RF1 ack1": 1.0, "RF2 ack1": 2.0, "RF3 ack1": 2.2}).word == "holds"
    assert judged("SCH-3", {"RF1 ack1": 1.0, "RF2 ack1": 2.0, "RF3 ack1": 8.0}).word == "does not hold"
    assert judged("SCH-3", {"RF1 ack1": 2.0, "RF2 ack1": 1.0, "RF3 ack1": 1.0}).word == "does not hold"
    both = {"RF2 ack1": 1.0, "RF2 ack2": 1.2, "RF3 ack1": 1.0, "RF3 ack2": 1.2}
    assert judged("SCH-4", both).word == "holds"
    assert judged("SCH-4", {**both, "RF3 ack2": 0.8}).word == "does not hold"


def test_tuning() -> None:
    tuned = judged("SCH-5", {"T1": 1.6, "T2": 1.0, "T2 durable": 1.5})
    assert tuned.word == "holds"
    assert "with the commit log as by default × 1.07" in tuned.reason
    assert judged("SCH-5", {"T1": 1.0, "T2": 1.6}).word == "does not hold"
    assert judged("SCH-6", {"T1": 1.0, "T2": 1.01}, operation=READ).word == "holds"
    assert judged("SCH-6", {"T1": 1.0, "T2": 1.5}, operation=READ).word == "does not hold"


def test_clients() -> None:
    """Latencies follow from the rates of these clients: in the product, each has its own number in flight."""
    assert judged("SCH-9", {"synchronous": 2.0, "asynchronous": 1.0}).word == "holds"
    assert judged("SCH-9", {"synchronous": 1.0, "asynchronous": 2.0}).word == "does not hold"
    assert judged("SCH-10", {"synchronous": 1.0, "asynchronous": 2.0}).word == "holds"


def test_number_of_tables() -> None:
    alike = dict.fromkeys(TABLES, 1.0)
    assert judged("SCH-11", alike).word == "holds"
    assert judged("SCH-11", {**alike, TABLES[-1]: 2.0}).word == "does not hold"
    # Spread grows with the mean here.
    assert judged("SCH-12", {**alike, TABLES[-1]: 3.0}).word == "holds"
    assert judged("SCH-12", {**alike, TABLES[-1]: 100.0}).word == "does not hold"


def test_metadata_of_typed_values() -> None:
    write = {"TV M0": 0.98, "TV M1": 1.0, "TV M2": 1.02, "TV M3": 5.0}
    assert judged("SCH-13", write).word == "holds"
    assert judged("SCH-13", {**write, "TV M0": 0.5}).word == "holds", "near 1 or above"
    assert judged("SCH-13", {**write, "TV M3": 1.2}).word == "does not hold"
    read = {"TV M0": 9.0, "TV M1": 1.0, "TV M2": 1.02}
    assert judged("SCH-14", read, operation=READ).word == "holds"
    assert judged("SCH-14", {**read, "TV M0": 1.1}, operation=READ).word == "does not hold"
    with_index = {**read, "TV M3": 10.0}
    assert judged("SCH-14", with_index, operation=READ, timeouts={("read", "TV M3", READ): 90}).word == "holds"
    assert judged("SCH-14", with_index, operation=READ).word == "does not hold"


def test_widths() -> None:
    assert judged("SCH-15", {"TV 5MB": 1.0, "TV 15MB": 1.2}).word == "holds"
    assert judged("SCH-16", {"TV 5MB": 2.3, "TV 15MB": 1.0}, operation=READ).word == "holds"
    assert judged("SCH-17", {"TV 15MB": 1.0, "TV 20MB": 3.0}, operation=NEW_RANGE).word == "holds"
    assert judged("SCH-17", {"TV 15MB": 1.0, "TV 20MB": 1.3}, operation=NEW_RANGE).word == "does not hold"


def test_sizes_of_batches() -> None:
    """Operations fall and readings rise; each doubling of the size beyond 150 brings little."""
    latency = {50: 1.0, 100: 1.5, 150: 2.0, 200: 2.6, 300: 3.8}
    held = {BATCHES[size]: of_size for size, of_size in latency.items()}
    assert judged("SCH-18", held).word == "holds"
    assert judged("SCH-18", {**held, "BA b300": 6.0}).word == "does not hold", "fewer readings than with 200"
    assert judged("SCH-18", {**held, "BA b300": 1.0}).word == "does not hold", "more operations than with 200"
    best = {**dict.fromkeys(BATCHES.values(), 2.0), "BA M1": 1.0}
    assert judged("SCH-19", best, operation=READ).word == "holds"
    assert judged("SCH-19", {**best, "BA b300": 0.5}, operation=READ).word == "does not hold"


def test_batches_against_typed_values() -> None:
    read = {"TV M1": 5.0, "BA M1": 1.0, "TV M2": 5.0, "BA M2": 1.0}
    assert judged("SCH-20", read, operation=READ).word == "holds"
    assert judged("SCH-20", {**read, "BA M2": 9.0}, operation=READ).word == "does not hold"
    assert judged("SCH-21", {"TV M1": 1.0, "BA M1": 2.5}).word == "holds"
    assert judged("SCH-21", {"TV M1": 1.0, "BA M1": 0.5}).word == "does not hold"


def test_time_outs_of_batches() -> None:
    figures = {
        (part, role, operation): 1.0 for part, operation in (("write", WRITE), ("read", READ)) for role in BATCHES.values()
    }
    growing = {("write", role, WRITE): number for number, role in enumerate(BATCHES.values())}
    assert judged_of("SCH-22", figures, growing).word == "holds"
    assert judged_of("SCH-22", figures, {("write", "BA b50", WRITE): 5}).word == "does not hold"
    assert judged_of("SCH-22", figures).word == "no difference seen"


def test_metadata_of_batches() -> None:
    assert judged("SCH-23", {"BA M0": 3.0, "BA M1": 2.0, "BA M2": 1.0}, operation=READ).word == "holds"
    assert judged("SCH-23", {"BA M0": 3.0, "BA M1": 1.0, "BA M2": 2.0}, operation=READ).word == "does not hold"
    halved = {"BA M0": 1.0, "BA M1": 1.0, "BA M2": 1.0, "BA M3": 2.0}
    assert judged("SCH-24", halved).word == "holds"
    assert judged("SCH-24", {**halved, "BA M3": 0.3}).word == "does not hold"


def test_widths_of_batches_say_nothing_where_rows_are_alike() -> None:
    roles = [f"BA {width}" for width in ("5MB", "7MB", "10MB", "13MB", "15MB", "20MB")]
    best = {**dict.fromkeys(roles, 2.0), "BA 13MB": 1.0}
    wider = {"BA 5MB": 5_000_000, "BA 20MB": 20_000_000}
    assert judged("SCH-25", best, operation=READ, rows=wider).word == "holds"
    assert judged("SCH-26", dict.fromkeys(roles, 1.0), rows=wider).word == "holds"
    assert judged("SCH-26", best, rows=wider).word == "does not hold"
    alike = judged("SCH-26", best, rows={"BA 5MB": 4_000_000, "BA 20MB": 4_000_000})
    assert (alike.word, "no timeline is longer" in alike.reason) == ("not tested here", True)


def test_mixed_load() -> None:
    def figures(typed: float, batched: float) -> Figures:
        alone = {("write", role, WRITE): 1.0 for role in ("TV M1", "BA M1")}
        return {**alone, ("mixed", "TV M1", WRITE): typed, ("mixed", "BA M1", WRITE): batched}

    assert judged_of("SCH-27", figures(1.5, 1.05)).word == "holds"
    assert judged_of("SCH-27", figures(1.5, 3.0)).word == "does not hold"
    assert judged_of("SCH-27", figures(0.5, 1.0)).word == "does not hold"


def test_what_schemas_move() -> None:
    roles = ["TV M0", "TV M1", "TV M2", "BA M0", "BA M1", "BA M2"]
    assert judged("SCH-28", {**dict.fromkeys(roles, 1.0), "BA M2": 1.1}).word == "holds"
    assert judged("SCH-28", {**dict.fromkeys(roles, 1.0), "BA M2": 3.0}).word == "does not hold"


@pytest.mark.parametrize(
    ("claim", "role"),
    [
        ("SCH-U1", "TV 15MB"),
        ("SCH-U2", "BA 10MB"),
        ("SCH-U3", "TV 5MB"),
        ("SCH-U4", "BA 20MB"),
        ("SCH-U5", "TV 15MB"),
        ("SCH-U6", "BA 13MB"),
    ],
)
def test_recommended_layouts(claim: str, role: str) -> None:
    """A layout holds where it is best at what its profile needs; a batch counts for its readings."""
    tested = ["TV 5MB", "TV 15MB", "BA 10MB", "BA 13MB", "BA 20MB"]
    operations = (("write", WRITE), ("read", READ))

    def figures(best: str) -> Figures:
        return {(part, name, operation): 1.0 if name == best else 3.0 for part, operation in operations for name in tested}

    assert judged_of(claim, figures(role)).word == "holds"
    other = next(name for name in tested if name != role and name[:2] == role[:2])
    assert judged_of(claim, figures(other)).word == "does not hold"
    is_at_once = claim in {"SCH-U1", "SCH-U3", "SCH-U5"}
    batched_is_best = judged_of(claim, figures("BA 10MB")).word if is_at_once else None
    assert batched_is_best in {None, "no difference seen"}, "a batch is not written at once"


def test_the_study_runs_on_an_embedded_database(sensor_schemas_folder: Path) -> None:
    summary = json.loads((sensor_schemas_folder / "summary.json").read_text(encoding="utf-8"))
    assert (summary["status"], summary["answers_equal"]) == ("complete", True)
    assert list(summary["result"]["parts"]) == ["write", "read", "mixed"]
    assert len(summary["claims"]) == 34
    assert {claim["verdict"] for claim in summary["claims"]} == {"not tested here"}, "there is no Cassandra"


def test_written_readings_were_read_back(sensor_schemas_folder: Path) -> None:
    variants = list((sensor_schemas_folder / "write" / "experiments").iterdir())
    assert len(variants) == 9
    for variant in variants:
        contents = json.loads((variant / "contents.json").read_text(encoding="utf-8"))
        # A layout that writes row by row executes a share of the operations.
        of_a_run = 1 if "typed-150" in variant.name else 40
        written = 3 * (of_a_run + 4)
        assert (contents["acknowledged_writes"], contents["read_back"]) == (written, written), variant.name
        assert (contents["wrong"], contents["lost_writes"], contents["one_write_in"]) == (0, 0, 1), variant.name
        assert contents["queried"] > 0


def test_the_page_has_fronts_effects_and_sizes(sensor_schemas_folder: Path) -> None:
    sections = json.loads((sensor_schemas_folder / "summary.json").read_text(encoding="utf-8"))["result"]["sections"]
    by_title = {section["title"]: section for section in sections}
    points = by_title["Writing against reading"]["front"]["points"]
    assert len(points) == 9
    assert any(point["is_on_front"] for point in points)
    effects = {(effect["factor"], effect["change"]) for effect in by_title["What each choice does to reading, fjall"]["effects"]}
    assert {("layout", "typed → batched"), ("encoding, batched", "text → gorilla"), ("batch, batched", "150 → 300")} <= effects
    sizes = {row[0]: row for row in by_title["What a reading takes"]["rows"]}
    encoded = {name: sizes[f"fjall-batched-{name}"][2] for name in ("text", "gorilla")} | {
        "packed": sizes["fjall-batched-150-at_once"][2]
    }
    assert encoded["gorilla"] < encoded["text"] < encoded["packed"]
    assert all(row[5] > 0 and row[6] > 0 for name, row in sizes.items() if "batched" in name)
    page = (sensor_schemas_folder / "report.html").read_text(encoding="utf-8")
    assert "Writing against reading" in page


def test_a_part_can_be_run_for_a_time(tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "out"
    few = ("--part", "mixed", "--schema", "batched", "--scale", "0.001", "--repeat", "1", "--no-open")
    outcome = cli("study", "run", "sensor-schemas", "--target", "fjall", *few, "--duration", "200ms", "--out", out)
    assert outcome.exit_code == 0, outcome.err
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert {figure["runs"] for figure in summary["result"]["figures"]} == {1}
    assert summary["answers_equal"] is True
