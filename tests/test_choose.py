"""The chooser: which databases meet which needs, the smallest sets of needs to drop, and the advice of the studies."""

import io
import json
import shutil
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sensorbench.analysis.choosing import Candidate, Clash, Need, Verdict, choose
from sensorbench.catalog import Machine, choose_databases, need_kinds, needs_of, read_profile
from sensorbench.catalog.axes import axes
from sensorbench.catalog.choose import HOLDS, MEASURABLE
from sensorbench.catalog.needs import clashes_of
from sensorbench.catalog.profiles import PROFILES, profiles
from sensorbench.errors import UsageError
from tests.conftest import Cli

MACHINE = Machine()
WORDS = st.frozensets(st.sampled_from("abc"))


@st.composite
def _choices(draw: st.DrawFn) -> tuple[list[Need], list[Candidate], list[Clash]]:
    needs = [
        Need(f"need {number}", f"axis {number % 4}", draw(WORDS), draw(st.booleans()))
        for number in range(draw(st.integers(1, 6)))
    ]
    candidates = [
        Candidate(f"candidate {number}", {f"axis {axis}": draw(WORDS) for axis in range(draw(st.integers(0, 4)))})
        for number in range(draw(st.integers(1, 4)))
    ]
    together = st.frozensets(st.sampled_from([need.name for need in needs]), min_size=1)
    return needs, candidates, [Clash(names, "") for names in draw(st.lists(together, max_size=2))]


@given(_choices())
def test_the_smallest_sets_to_drop_are_those_of_trying_all(case: tuple[list[Need], list[Candidate], list[Clash]]) -> None:
    needs, candidates, clashes = case

    def left(kept: Sequence[Need]) -> set[str]:
        """Those that have a word of each need that is kept, if all of them can be had at once."""
        if any(clash.needs <= {need.name for need in kept} for clash in clashes):
            return set()
        return {
            candidate.name
            for candidate in candidates
            if all(candidate.traits.get(need.axis, frozenset()) & need.accepts for need in kept)
        }

    musts = [need for need in needs if need.is_must]
    found = choose(needs, candidates, clashes)
    assert set(found.fitting) == left(musts)
    for size in range(len(musts) + 1):
        tried = {dropped: left([need for need in musts if need not in dropped]) for dropped in combinations(musts, size)}
        by_hand = {tuple(need.name for need in dropped): names for dropped, names in tried.items() if names}
        if by_hand:
            break
    assert {drop.needs: set(drop.leaves) for drop in found.to_drop} == ({} if found.fitting else by_hand)


def test_what_is_not_known_is_not_met_and_told_apart() -> None:
    need = Need("growth", "growing", frozenset({"serves"}))
    found = choose([need], [Candidate("silent", {}), Candidate("fixed", {"growing": frozenset({"no"})})])
    assert found.fitting == ()
    assert [outcome.verdicts["growth"] for outcome in found.outcomes] == [Verdict.UNKNOWN, Verdict.NOT_MET]


def test_a_wish_orders_and_excludes_nobody() -> None:
    must, wish = Need("must", "a", frozenset("x")), Need("wish", "b", frozenset("x"), is_must=False)
    candidates = [Candidate("plain", {"a": frozenset("x")}), Candidate("better", {"a": frozenset("x"), "b": frozenset("x")})]
    assert choose([must, wish], candidates).fitting == ("better", "plain")


def test_needs_are_about_axes_that_there_are() -> None:
    known = {axis: set(about.words) for axis, about in axes().items()}
    known |= {HOLDS: {"memory", "memories", "disk", "disks"}, MEASURABLE: {"here", "by-url", "no"}}
    for kind in need_kinds().values():
        for choice in kind.choices.values():
            assert set(choice.accepts) <= known[kind.axis]


@pytest.mark.parametrize("name", sorted(profiles()))
def test_by_its_own_facts_each_study_is_right(name: str) -> None:
    """What a study advises first is what meets the needs of its use case, in the versions of its time, and nothing else does."""
    profile = profiles()[name]
    assert set(choose_databases(needs_of(profile.needs, (), MACHINE), "studied").fitting) == set(profile.advice.advised)


def test_differences_to_a_study_are_explained(cli: Cli) -> None:
    told = cli("choose", "--profile", "traffic-analytics", "--json").json
    differences = {(difference["name"], difference["what"]): difference["why"] for difference in told["profile"]["differences"]}
    assert "query batch: get" in differences["voldemort", "advised with more work in clients, for what it lacks"]
    why = differences["riak", "fits today, not then"]
    assert "then growth nodes: errors" in why
    assert "today growth nodes: serves" in why


def test_contradictory_needs_are_told_by_the_smallest_sets(cli: Cli) -> None:
    told = cli("choose", "--consistency", "transactional", "--in-partition", "availability", "--growth", "nodes", "--json").json
    assert told["fitting"] == []
    drops = {tuple(drop["needs"]): set(drop["leaves"]) for drop in told["to_drop"]}
    assert drops.keys() == {("consistency transactional",), ("in-partition availability",)}
    assert {"cassandra", "riak"} <= drops["consistency transactional",]
    assert "mongodb" in drops["in-partition availability",]


def test_needs_that_a_database_meets_one_by_one_may_clash(cli: Cli) -> None:
    given = {"consistency": ["strong"], "in-partition": ["availability"], "growth": ["nodes"]}
    needs = needs_of(given, (), MACHINE)
    assert [clash.needs for clash in clashes_of(needs)] == [{"consistency strong", "in-partition availability"}]
    cassandra = next(outcome for outcome in choose_databases(needs, "today").outcomes if outcome.name == "cassandra")
    assert not cassandra.missing
    assert not cassandra.fits
    assert (
        "clash: while the network divides the nodes"
        in cli("choose", "--consistency", "strong", "--in-partition", "availability").out
    )


@pytest.mark.parametrize(("amount", "fits"), [("10GB", {"redis", "fjall"}), ("200GB", {"fjall"}), ("5TB", set())])
def test_data_are_judged_by_machines(cli: Cli, amount: str, fits: set[str]) -> None:
    assert {"redis", "fjall"} & set(cli("choose", "--data", amount, "--json").json["fitting"]) == fits
    assert "redis" in cli("choose", "--data", amount, "--node-memory", "9TB", "--json").json["fitting"]


def test_measurements_are_pointed_to(cli: Cli, study_folder: Path) -> None:
    found = cli("choose", "--operations", "library", study_folder.parent, "--json").json
    measured = {database["name"]: database["measurements"] for database in found["databases"] if database["fits"]}
    assert measured.pop("chdb") == []
    assert all(entry["what"].startswith("evidence bundle ") for entry in measured.pop("duckdb"))
    assert measured.keys() == {"sqlite", "fjall"}
    # What was measured by whoever asks comes before what is published.
    for of_database in measured.values():
        assert of_database[0]["seen"] == str(study_folder / "report.html")
    first, *others = (entry["what"].startswith("evidence bundle ") for entry in measured["fjall"])
    assert not first
    assert others
    assert all(others)


def test_data_beyond_what_was_measured_are_marked(cli: Cli) -> None:
    """Only where a size is given: a choice such as `disk` says nothing of how much."""
    marked = cli("choose", "--operations", "library", "--data", "200GB").out
    assert "extrapolated: GB of data: 200 are needed, 0." in marked
    assert "extrapolated" not in cli("choose", "--operations", "library", "--data", "disk").out


def test_flags_replace_what_a_profile_says_and_wishes_exclude_nobody(cli: Cli) -> None:
    profile = ("choose", "--profile", "sensor-data", "--json")
    assert "fjall" in cli(*profile, "--data", "10GB").json["fitting"]
    wished = cli(*profile, "--wish", "data").json
    assert {"cassandra", "hbase"} <= set(wished["fitting"][:5])
    assert wished["fitting"][-1] in {"fjall", "redis", "victoriametrics"}
    assert [need["name"] for need in wished["needs"] if not need["is_must"]] == ["data cluster"]


def answer(monkeypatch: pytest.MonkeyPatch, answers: dict[str, str]) -> None:
    """Puts the answers to all questions where the command reads them."""
    lines = "".join(f"{answers.get(name, '')}\n" for name in need_kinds())
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))


def test_interview(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(
        monkeypatch,
        {"query": "range, batch", "write-share": "0.9", "durable": "yes", "maintained": "no", "licence": "permissive ?"},
    )
    asked = cli("choose", "--interview", "--json")
    flags = ("--query", "range", "--query", "batch", "--write-share", "0.9", "--durable", "--licence", "permissive")
    assert asked.json == cli("choose", *flags, "--wish", "licence", "--json").json
    assert "Which queries must the database answer itself?" in asked.err


def test_interview_asks_again_and_skips_what_is_given(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [name for name in need_kinds() if name != "query"]
    lines = ["absolute", "strong", *([""] * (len(names) - 1))]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines) + "\n"))
    asked = cli("choose", "--interview", "--query", "join", "--json")
    assert [need["name"] for need in asked.json["needs"]] == ["consistency strong", "query join"]
    assert "consistency absolute: expected one of eventual, time-line, strong" in asked.err


def test_interview_that_is_interrupted_or_ends_early(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("strong\n"))
    ended = cli("choose", "--interview")
    assert ended.exit_code == 2
    assert "standard input ended before in-partition was answered" in ended.err

    def interrupt() -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.input", interrupt)
    assert cli("choose", "--interview").exit_code == 130


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "say what you need, for example --query range --write-share 0.9; or a use case by --profile (file-store,"),
        (("--profile", "shop"), "--profile shop: expected one of file-store, sensor-data, traffic-analytics, web-site"),
        (("--consistency", "absolute"), "--consistency absolute: expected one of eventual, time-line, strong"),
        (("--write-share", "2"), "--write-share 2: expected a share from 0 to 1"),
        (("--data", "much"), "--data much: expected a size such as 500MB"),
        (("--durable", "--wish", "licence"), "--wish licence: expected one of the needs that are given: durable"),
        (("--durable", "--node-disk", "big"), "--node-disk big: expected a size"),
        (("--durable", "nowhere"), "nowhere: no results are there"),
        (("--durable", "--html", "nowhere/page.html"), "--html nowhere/page.html: expected a file in an existing folder"),
    ],
)
def test_what_makes_no_sense(cli: Cli, arguments: tuple[str, ...], expected: str) -> None:
    outcome = cli("choose", *arguments)
    assert outcome.exit_code == 2
    assert expected in outcome.err


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('growth = "nodes"', 'growth = "much"', "needs.growth: there is no choice 'much'; expected one of readers, nodes"),
        ('growth = "nodes"', 'grwth = "nodes"', "needs.grwth: there is no such need"),
        ('advised = ["cassandra"]', 'advised = ["oracle"]', "advice.advised: there is no database 'oracle' in the catalog"),
        ('source = "elasticity: use-case advice"', 'source = "hearsay"', "source: expected one of the studies"),
    ],
)
def test_a_profile_that_cannot_be_used(tmp_path: Path, old: str, new: str, expected: str) -> None:
    file = tmp_path / "file-store.toml"
    shutil.copy(PROFILES / file.name, file)
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(UsageError, match=r"file-store\.toml, line") as error:
        read_profile(file)
    assert expected in str(error.value)


def test_page_and_profiles(cli: Cli, tmp_path: Path) -> None:
    page = tmp_path / "choice.html"
    told = cli("choose", "--profile", "web-site", "--html", page, "--no-open").out
    assert f"page: {page}" in told
    assert "fits today, not then" in page.read_text(encoding="utf-8")
    listed = cli("choose", "--profiles").out
    assert all(name in listed for name in profiles())
    assert {entry["name"] for entry in json.loads(cli("choose", "--profiles", "--json").out)} == set(profiles())
