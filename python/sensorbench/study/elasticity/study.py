"""The study as a whole: tables of what several works measured beside what the source printed, and the claims."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sensorbench import toml_file
from sensorbench.results.elasticity import COMPARISON
from sensorbench.results.summary.claims import JudgedClaim
from sensorbench.study.elasticity.claims import JUDGES
from sensorbench.study.elasticity.evidence import Evidence, evidence_of, published
from sensorbench.study.judging import judged_by
from sensorbench.study.study import Claim, load_claims

FOLDER = Path(__file__).parent
# Figures of the tables, in their order.
FIGURES = ("transfer_s", "additional_s", "total_s", "elasticity", "scalability", "av_s", "sd_s", "hottest_share")


class Role(toml_file.FileModel):
    """A database: what people call it, as the source does if it has it, and its names here."""

    title: str
    databases: list[str]


class StudyFile(toml_file.FileModel):
    """`study.toml`. `changes` are as users write them, after each of which that adds nodes data and load grow; `repeat`: how many times each
    target has its turn.
    """

    title: str
    question: str
    source: str
    dataset: str
    targets: list[str]
    nodes: int
    changes: list[str]
    repeat: int
    roles: dict[str, Role]


@dataclass(frozen=True)
class ElasticityStudy:
    """What is done to which clusters, and the claims, each of which has a judge or says what it lacks."""

    name: str
    file: StudyFile
    claims: tuple[Claim, ...]

    @classmethod
    def load(cls) -> "ElasticityStudy":
        """The study in this folder of the package."""
        file = toml_file.load(FOLDER / "study.toml", StudyFile)
        return cls(FOLDER.name, file, load_claims(FOLDER / "claims.toml", JUDGES))


ELASTICITY = ElasticityStudy.load()


def printed() -> list[dict[str, Any]]:
    """What the source printed: role, transition, figure, value, note."""
    return published(FOLDER / "published.csv", {role.title: name for name, role in ELASTICITY.file.roles.items()})


def summarise(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Tables and claims of several works, of which those of the same database are repetitions. Times in s."""
    of = ELASTICITY.file.roles
    evidence = evidence_of(summaries, {name: role.databases for name, role in of.items()})
    return {
        "kind": COMPARISON,
        "works": [
            {"title": one["title"], "state": one["state"], "target": one["setting"]["target"], "command": one["command"]}
            for one in summaries
        ],
        "roles": {name: role.title for name, role in of.items()},
        "figures": _figures(evidence),
        "published": printed(),
        "claims": [judged(claim, evidence).model_dump() for claim in ELASTICITY.claims],
    }


def judged(claim: Claim, evidence: Evidence) -> JudgedClaim:
    """What summaries say of a claim."""
    return judged_by(JUDGES, claim, evidence)


def _figures(evidence: Evidence) -> list[dict[str, Any]]:
    """Each figure of each role and transition, with its interval over works."""
    found = []
    for role, transition, figure in evidence.values:
        interval = evidence.mean(role, transition, figure) if figure in FIGURES else None
        if interval is not None:
            found.append({"role": role, "transition": transition, "figure": figure, **asdict(interval)})
    return found
