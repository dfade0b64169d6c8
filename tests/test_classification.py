"""The claims of the classification on registers and consistency levels that are made up."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sensorbench.catalog.classification import JUDGES, RegisterEvidence, _roles_of, judged_claims
from sensorbench.catalog.serialize import catalog_claims
from sensorbench.claims import Figure, FigureEvidence, RunValues, judged_by
from sensorbench.claims.expression import Expression
from sensorbench.results import ComparisonResult
from tests.given_evidence import NOISE

CLAIMS = {claim.id: claim for claim in judged_claims()}


class OfRegisters(RegisterEvidence):
    """Registers of roles with this many stale reads, of this many that were checked; and mean latencies by role."""

    def __init__(self, stale: Mapping[str, int], reads: int = 50_000, latency: Mapping[str, float] | None = None) -> None:
        found = {
            role: SimpleNamespace(
                counts=SimpleNamespace(answered_reads=reads), seen={"stale_reads": SimpleNamespace(count=count)}
            )
            for role, count in stale.items()
        }
        self.latency = latency or {}
        summary = cast("Any", SimpleNamespace(result=SimpleNamespace(guarantees=found)))
        super().__init__(cast("Any", None), summary, {role: role for role in (*stale, *self.latency)})

    def interval(self, expression: Expression, confidence: float = 0.95, *, is_ratio: bool = True) -> Any:
        return FigureEvidence.interval(self, expression, confidence, is_ratio=is_ratio)

    def values(self, figure: Figure) -> RunValues | None:
        if figure.quantity != "latency":
            return super().values(figure)
        value = self.latency.get(figure.arguments[0])
        return None if value is None else RunValues({run: value * noise for run, noise in enumerate(NOISE)})


def verdict(name: str, evidence: RegisterEvidence) -> str:
    return judged_by(CLAIMS[name], evidence, JUDGES).verdict


@pytest.mark.parametrize(("name", "role"), [("CLS-1", "strong"), ("CLS-7", "redis")])
def test_one_stale_read_contradicts_what_allows_none(name: str, role: str) -> None:
    assert verdict(name, OfRegisters({role: 0})) == "reproduced"
    assert verdict(name, OfRegisters({role: 1})) == "not reproduced"
    assert verdict(name, OfRegisters({role: 0}, reads=100)) == "below minimum scale"


def test_none_among_many_does_not_contradict_that_there_can_be_some() -> None:
    assert verdict("CLS-2", OfRegisters({"weak": 3})) == "reproduced"
    assert verdict("CLS-2", OfRegisters({"weak": 0})) == "inconclusive"


def test_levels_of_consistency_are_compared() -> None:
    printed = {"one": 2.585, "quorum": 2.998, "all": 5.219}
    assert verdict("CLS-6", OfRegisters({}, latency=printed)) == "reproduced"
    assert verdict("CLS-6", OfRegisters({}, latency=dict.fromkeys(printed, 1.0))) == "not reproduced"
    assert verdict("CLS-5", OfRegisters({}, latency={"alone_one": 1.0, "alone_quorum": 1.02})) == "reproduced"
    assert verdict("CLS-5", OfRegisters({}, latency={"alone_one": 1.0, "alone_quorum": 1.3})) == "not reproduced"


@pytest.mark.parametrize(
    ("promises", "settings", "roles"),
    [
        ("quorums", {"replication": "3", "consistency": "quorum"}, ["quorum", "strong"]),
        ("quorums", {"replication": "3", "consistency": "local_one"}, ["one", "weak"]),
        ("quorums", {"replication": "1", "consistency": "one"}, ["alone_one", "strong"]),
        ("quorums", {"replication": "2", "consistency": "one"}, ["weak"]),
        ("one_thread", {}, ["redis"]),
        ("one_thread", {"replicas": "1"}, []),
        (None, {}, []),
    ],
)
def test_variants_are_known_by_what_their_database_says(promises: str | None, settings: dict[str, str], roles: list[str]) -> None:
    class OfOneVariant(ComparisonResult):
        def usable_runs(self, variant: str) -> list[Any]:
            return [SimpleNamespace(manifest=SimpleNamespace(description={"settings": settings}))]

    variant = cast("Any", SimpleNamespace(id="a", promises=promises, database="redis"))
    assert _roles_of(OfOneVariant(Path(), cast("Any", None)), variant) == roles


def test_every_claim_of_the_classification_is_judged_or_says_what_is_lacking() -> None:
    assert CLAIMS.keys() == {"CLS-1", "CLS-2", "CLS-5", "CLS-6", "CLS-7"}
    others = [claim for claim in catalog_claims() if claim.id not in CLAIMS]
    assert len(others) == 15
    # A test of the project sees it, or the claim of a study judges it.
    assert all(claim.blocked_by or claim.test or "(claim " in claim.command for claim in others)
