"""The claims of the building study on the paper's own figures, on the contrary, and by simulation."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sensorbench.claims import Claim, measured
from sensorbench.results.manifest import MEASURE
from sensorbench.results.summary.comparison import ServerDescription
from sensorbench.studies import STUDIES
from tests.given_evidence import verdict_on
from tests.log_results import variant_of

Q1, Q2, Q3, Q4 = "get_sensor_data", "get_peak_data", "get_available_data", "get_floor_zone_data"
CLAIMS = {claim.id: claim for claim in STUDIES["iot"].claims}
JUDGED = [claim for claim in CLAIMS.values() if claim.rules]
# Latencies in ms (figure 7), sizes, load times and bytes of a partition as the paper has them; what it shows in charts or suggests is made up.
PRINTED: Mapping[str, float] = {
    f"latency(sql, {Q1})": 1313.3975, f"latency(sql, {Q2})": 1189.9008, f"latency(sql, {Q3})": 0.6246, f"latency(sql, {Q4})": 3.2989,
    f"latency(sql_planned, {Q3})": 0.6246, f"latency(sql_planned, {Q4})": 3.2989,
    f"latency(nosql, {Q1})": 16.5589, f"latency(nosql, {Q2})": 155.2567, f"latency(nosql, {Q3})": 5.7207, f"latency(nosql, {Q4})": 5.3275,
    "size_bytes(sql)": 7.7e9, "size_bytes(nosql)": 0.6e9, "load_s(sql)": 3600.0, "load_s(nosql)": 1800.0,
    "year_bytes(nosql)": 17.5e6, "five_years_bytes(nosql)": 87.5e6,
    "variation(sql)": 1.0, "variation(nosql)": 0.3, "late_spikes(sql)": 0.8, "first_over_rest(sql)": 2.0, "first_over_rest(nosql)": 2.0,
    "processors(sql)": 2.0, "processors(nosql)": 1.0, "megabytes(sql)": 2000.0, "megabytes(nosql)": 1000.0,
    "long_ranges(nosql_month, nosql)": 1.5, f"latency(nosql_tables, {Q2})": 50.0, f"latency(nosql_tables, {Q3})": 0.6,
    f"latency(nosql_tables, {Q4})": 3.0, f"latency(sql_wide, {Q3})": 1.2,
}  # fmt: skip


@pytest.mark.parametrize("claim", JUDGED, ids=lambda claim: claim.id)
def test_the_papers_own_figures_reproduce_its_claims(claim: Claim) -> None:
    judgement = verdict_on(claim, PRINTED)
    assert judgement.verdict == "reproduced", judgement.reason


# What a claim says of one system alone has a contrary of its own.
CONTRARY = {
    "late_spikes(sql)": 0.2, "year_bytes(nosql)": 3e8, "five_years_bytes(nosql)": 3e8, "first_over_rest(sql)": 0.5, "first_over_rest(nosql)": 0.5,
    "long_ranges(nosql_month, nosql)": 0.7, f"latency(nosql_tables, {Q3})": 90.0, f"latency(nosql_tables, {Q4})": 90.0,
}  # fmt: skip


@pytest.mark.parametrize("claim", JUDGED, ids=lambda claim: claim.id)
def test_the_contrary_contradicts_them(claim: Claim) -> None:
    contrary = {figure: CONTRARY.get(figure, 1.0 / value) for figure, value in PRINTED.items()}
    # Equal cost is contradicted by a difference in either direction.
    if claim.id in {"IOT-6", "IOT-7"}:
        contrary |= {
            f"latency(sql, {Q2})": 9.0,
            f"latency(sql, {Q1})": 1.0,
            f"latency(nosql, {Q4})": 9.0,
            f"latency(nosql, {Q3})": 1.0,
        }
    assert verdict_on(claim, contrary).verdict == "not reproduced"


@pytest.mark.parametrize("claim", JUDGED, ids=lambda claim: claim.id)
def test_where_systems_do_not_differ_no_difference_is_reproduced(claim: Claim) -> None:
    if claim.rules[0].kind in {"equal", "no_less", "threshold"}:
        return
    assert verdict_on(claim, dict.fromkeys(PRINTED, 1.0)).verdict not in {"reproduced", "partly reproduced"}


def test_no_embedded_database_judges_a_claim_about_servers() -> None:
    roles = STUDIES["iot"].roles
    variants = [variant for of_role in (*roles.published.values(), *roles.substitute.values()) for variant in of_role]
    assert variants
    assert not [variant for variant in variants if variant.startswith(("sqlite/", "fjall/"))]


def roles_played(answered: str) -> tuple[dict[str, str], dict[str, str]]:
    """All roles, and those of substitutes, that the star schema plays at a URL of MySQL where a database answered that calls itself so."""
    variant = variant_of("mysql/star").model_copy(update={"id": "mysql-star", "system": ""})
    description = ServerDescription(database=answered, version="1")
    run = SimpleNamespace(state="complete", manifest=SimpleNamespace(phases=[MEASURE]))
    result = SimpleNamespace(
        manifest=SimpleNamespace(variants=[variant]),
        loads={"mysql-star": SimpleNamespace(description=description)},
        runs={"mysql-star": [run]},
    )
    found = measured(STUDIES["iot"], {"": cast("Any", result)}, {"": cast("Any", SimpleNamespace(answers_equal=True))})[""]
    return found.evidence.roles, dict(found.substitutes)


def test_a_mysql_is_judged_as_the_papers_own_system_and_by_its_own_plan() -> None:
    roles, substitutes = roles_played("MySQL")
    assert roles == {"sql": "mysql-star", "sql_planned": "mysql-star"}
    assert substitutes == {}


def test_a_mariadb_that_answers_to_a_url_of_mysql_is_a_substitute_with_another_plan() -> None:
    roles, substitutes = roles_played("MariaDB")
    assert roles == {"sql": "mysql-star"} == substitutes


def test_every_claim_has_its_sentence() -> None:
    assert all(claim.sentence for claim in JUDGED)
    assert {claim.id for claim in CLAIMS.values() if claim.blocked_by} == {"IOT-22"}
