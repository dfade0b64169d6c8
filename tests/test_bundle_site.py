"""Trust labels, and the site of bundles: its data, its files, and the page in a real browser."""

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from sensorbench.bundles import Evidence, trust_of
from sensorbench.report.site import SiteMarker
from sensorbench.report.site_data import PricePerHour, machine_of
from sensorbench.results.bundle import read_entry, read_index
from sensorbench.results.manifest import now
from sensorbench.results.summary.comparison import ComparisonSummary
from tests.browser import dom_of
from tests.conftest import Cli, run_main
from tests.forging import edit_json, forged

LIMIT_BYTES = 2_000_000


@pytest.fixture(scope="session")
def study_bundle(study_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("bundle") / "study.sbz"
    assert run_main(("bundle", study_folder, "--out", out, "-q")) == 0
    return out


@pytest.fixture(scope="session")
def site(study_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of one bundle, with what its machine costs."""
    out = tmp_path_factory.mktemp("site") / "site"
    assert run_main(("site", study_bundle, "--out", out, "--price-per-hour", "3.6", "-q")) == 0
    return out


def evidence_of(bundle: Path, *, is_verified: bool = True) -> Evidence:
    summary = ComparisonSummary.model_validate_json(read_entry(bundle, "results/summary.json"))
    return Evidence(read_index(bundle), {".": summary}, is_verified)


def rerun_of(own: Evidence, *, machine: Mapping[str, object], factor: float = 1.0, slower: bool = True) -> Evidence:
    """The same measured again: at another machine, with ratios that are this many times as large, or with the order of variants reversed."""
    index = own.index.model_copy(
        update={"id": "another", "files": [file.model_copy(update={"sha256": file.sha256[::-1]}) for file in own.index.files]}
    )

    def changed(summary: dict[str, Any]) -> dict[str, Any]:
        summary["environment"].update(machine)
        for ranking in summary["result"]["rankings"]:
            for place in ranking["places"]:
                if place["against_best"] is None:
                    place["value_s"] = place["value_s"] if slower else place["value_s"] * 1e6
                else:
                    ratio = place["against_best"]["ratio"]
                    ratio.update({key: ratio[key] * factor for key in ("value", "low", "high") if ratio[key] is not None})
        return summary

    summary = ComparisonSummary.model_validate(changed(own.summaries["."].model_dump(mode="json")))
    return Evidence(index, {".": summary}, is_verified=True)


def test_trust_labels_follow_their_rules(study_bundle: Path) -> None:
    own, today = evidence_of(study_bundle), now()
    other = {"processor": "another", "memory_bytes": 1}
    confirmed = rerun_of(own, machine=other)
    assert trust_of(own, [own], today).label == "own run"
    assert trust_of(own, [own, confirmed], today).label == "audited"
    assert trust_of(replace(own, is_verified=False), [own, confirmed], today).label == "re-run"
    for rerun, why in (
        (rerun_of(own, machine={}), "a machine of the same parts"),
        (rerun_of(own, machine=other, factor=1000.0), "does not overlap"),
        (rerun_of(own, machine=other, slower=False), "another direction"),
        (replace(confirmed, index=own.index.model_copy(update={"id": "copy"})), "it is a copy"),
    ):
        trust = trust_of(own, [rerun], today)
        assert (trust.label, why in trust.why) == ("own run", True), trust
    assert not trust_of(own, [], today + timedelta(days=360)).is_stale
    assert trust_of(own, [], today + timedelta(days=370)).is_stale


@pytest.mark.parametrize(
    ("processors", "allowed", "expected"),
    [(2, 2, "Z80, 2 CPUs, 64.0 kB"), (4, 1, "Z80, 4 CPUs (client on 1), 64.0 kB"), (1, 1, "Z80, 1 CPU, 64.0 kB")],
)
def test_a_machine_has_all_of_its_processors(study_bundle: Path, processors: int, allowed: int, expected: str) -> None:
    of_machine = {"processor": "Z80", "processors": processors, "processors_allowed": allowed, "memory_bytes": 64_000}
    assert machine_of(evidence_of(study_bundle).summaries["."].model_copy(update={"environment": of_machine})) == expected


def data_of(site: Path) -> dict[str, Any]:
    text = (site / "data.js").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text.removeprefix("window.SITE = ").removesuffix(";\n"))
    return found


def test_a_site_has_what_the_bundle_has(site: Path, summary: dict[str, Any], study_bundle: Path) -> None:
    data = data_of(site)
    (bundle,), (comparison,) = data["bundles"], data["comparisons"]
    assert (bundle["trust"], bundle["verified"], bundle["stale"]) == ("own run", True, False)
    assert sum(bundle["verdicts"].values()) == len(summary["claims"])
    for number, ranking in enumerate(summary["result"]["rankings"]):
        values = {place["variant"]: place["value_s"] for place in ranking["places"]}
        shown = {variant["id"]: variant["values"][number] for variant in comparison["variants"]}
        assert shown == pytest.approx(values, rel=1e-3)
    variant = comparison["variants"][0]
    # At 3.6 an hour a second costs a thousandth.
    assert variant["write_cost"] == pytest.approx(1e-3 * 1e6 / variant["readings_per_s"], rel=1e-3)
    assert PricePerHour(3.6).of_queries(500.0) == pytest.approx(0.002)
    assert (site / bundle["file"]).read_bytes() == study_bundle.read_bytes()


def test_a_site_asks_nobody_and_is_small(site: Path) -> None:
    page = (site / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"([^\"]*)\"", page) == [
        "data:,",
        next(iter(re.findall(r"data\.js\?[0-9a-f]+", page))),
    ]
    assert not re.search(r"fetch\(|XMLHttpRequest|import\(|url\(|@import", page)
    # The part of one bundle, two hundred times.
    assert len(page) + 200 * (site / "data.js").stat().st_size < LIMIT_BYTES


def test_a_site_is_written_anew_only_over_one_of_ours(cli: Cli, site: Path, study_bundle: Path, tmp_path: Path) -> None:
    out = tmp_path / "site"
    shutil.copytree(site, out)
    mine, left = out / "mine.txt", out / "details" / "left.js"
    mine.write_text("mine", encoding="utf-8")
    left.write_text("left", encoding="utf-8")
    marker = SiteMarker.model_validate_json((out / "site.json").read_bytes())
    (out / "site.json").write_text(
        SiteMarker(files=[*marker.files, "details/left.js", "../outside.txt"]).model_dump_json(), encoding="utf-8"
    )
    outside = tmp_path / "outside.txt"
    outside.write_text("mine", encoding="utf-8")
    refused = cli("site", study_bundle, "--out", out, "--no-verify")
    assert (refused.exit_code, "--replace" in refused.err) == (2, True)
    ended = cli("site", study_bundle, "--out", out, "--no-verify", "--replace", "--json")
    assert (ended.exit_code, ended.json["trust"]) == (0, {"own run": 1})
    assert (mine.read_text(encoding="utf-8"), outside.read_text(encoding="utf-8"), left.exists()) == ("mine", "mine", False)
    twice = cli("site", study_bundle, study_bundle, "--out", tmp_path / "other", "--no-verify")
    assert (twice.exit_code, "the same results" in twice.err) == (2, True)


def test_a_rejected_bundle_makes_no_site(cli: Cli, study_bundle: Path, tmp_path: Path) -> None:
    changed = forged(
        study_bundle,
        tmp_path,
        lambda unpacked: edit_json(unpacked / "results/summary.json", lambda summary: summary.update(answers_equal=False)),
        is_summarised=False,
    )
    ended = cli("site", changed, "--out", tmp_path / "site")
    assert (ended.exit_code, "answers_equal" in ended.err, (tmp_path / "site").exists()) == (1, True, False)


def test_pages_in_a_browser(site: Path, tmp_path: Path) -> None:
    (bundle,), (comparison,) = data_of(site)["bundles"], data_of(site)["comparisons"]

    def page(fragment: str) -> str:
        return dom_of(f"{(site / 'index.html').as_uri()}#{fragment}", tmp_path)

    variants = [variant["title"] for variant in comparison["variants"]]
    start = page("/")
    assert all(f">{title}</a>" in start for title in variants)
    assert f"{len(variants)} variants in 1 comparison, of 1 bundle" in start
    filtered = page("/?database=fjall&load=no")
    table = filtered.partition("<tbody>")[2]
    assert [title for title in variants if f">{title}</a>" in table] == [title for title in variants if title.startswith("fjall")]
    assert "Load and settle" in start
    assert "Load and settle" not in filtered
    of_variant = page(quote(f"/variant/{comparison['id']}/sqlite-natural"))
    for words in ("SELECT", "load_query", "sensorbench verify", "Load-generator health", '<path d="M'):
        assert words in of_variant, words
    assert 'class="command"' in of_variant
    of_study = page(f"/study/{bundle['study']}")
    assert "History over versions" in of_study
    assert "IOT-1" in of_study
    assert "No bundle of this site has that" in page("/bundle/none")
