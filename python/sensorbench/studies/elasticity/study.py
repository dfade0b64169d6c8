"""The study as a whole: what was measured of several clusters beside what the paper has, and the claims."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sensorbench import toml_file
from sensorbench.claims import Claim, Figure, judged_by, load_claims
from sensorbench.results.manifest import VariantManifest
from sensorbench.results.summary.claims import JudgedClaim
from sensorbench.results.summary.elasticity import (
    ComparedCluster,
    ElasticityComparisonFigures,
    ElasticityComparisonSummary,
    ElasticitySummary,
    TransitionFigure,
)
from sensorbench.results.summary.envelope import Caveat
from sensorbench.results.summary.published import PublishedTable
from sensorbench.studies.elasticity.evidence import Evidence, evidence_of
from sensorbench.studies.published import Found, found_in, measured_by, published_of

FOLDER = Path(__file__).parent
TITLE = "Elasticity of databases"
# Figures of the tables, in their order.
FIGURES = ("transfer_s", "additional_s", "total_s", "elasticity", "scalability", "av_s", "sd_s", "hottest_share")


class Role(toml_file.FileModel):
    """A database: what people call it, as the source does if it has it, and its names here."""

    title: str
    databases: list[str]


class StudyFile(toml_file.FileModel):
    """`study.toml`. `changes` are as users write them, after each of which that adds nodes data and load grow; `repetitions`: how many times each
    target has its turn.
    """

    title: str
    question: str
    source: str
    dataset: str
    targets: list[str]
    nodes: int
    changes: list[str]
    repetitions: int
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
        return cls(FOLDER.name, file, load_claims(FOLDER / "claims.toml"))


ELASTICITY = ElasticityStudy.load()


def summarise(summaries: Sequence[tuple[str, ElasticitySummary]]) -> ElasticityComparisonSummary:
    """What several results say together, of which those of the same database are repetitions: the folder of each, and its summary."""
    roles, works = ELASTICITY.file.roles, [summary for _, summary in summaries]
    evidence = evidence_of(works, {name: role.databases for name, role in roles.items()})
    return ElasticityComparisonSummary(
        **_envelope(works),
        claims=[judged(claim, evidence) for claim in ELASTICITY.claims],
        published=_published(evidence),
        result=ElasticityComparisonFigures(
            works=[
                ComparedCluster(
                    folder=folder,
                    title=summary.title,
                    status=summary.status,
                    target=summary.variants[0].target,
                    command=summary.command,
                )
                for folder, summary in summaries
            ],
            roles={name: role.title for name, role in roles.items()},
            figures=_figures(evidence),
        ),
    )


def _published(evidence: Evidence) -> list[PublishedTable]:
    """The tables of the paper with the means over repetitions."""
    published = published_of(ELASTICITY.name)
    conditions = (
        "The paper doubled clusters of 6, 12 and 24 nodes; its transitions stand beside the first, second and third here."
    )
    return published.tables(measured_by(lambda figure: _found(evidence, figure)), conditions=conditions) if published else []


def _found(evidence: Evidence, figure: Figure) -> Found:
    """What was measured of a figure, or why it was not."""
    found = found_in(evidence, figure)
    if found.value is not None or found.why:
        return found
    role, place = figure.arguments
    title = ELASTICITY.file.roles[role].title
    is_measured = any(of_role == role for of_role, _, _ in evidence.by_place)
    return Found(
        None, "not run", f"{title}: transition {place} has no such figure" if is_measured else f"{title} was not measured"
    )


def _envelope(works: Sequence[ElasticitySummary]) -> dict[str, Any]:
    """What the works have in common, and how they ended: the first that is not complete speaks for all."""
    cut_short = next((work for work in works if work.status != "complete"), None)
    versions = sorted({work.version for work in works})
    commands = [work.command for work in works]
    return {
        "title": TITLE,
        "status": cut_short.status if cut_short else "complete",
        "reason": cut_short.reason if cut_short else None,
        "created": max(work.created for work in works),
        "version": ", ".join(versions),
        "command": commands[0] if all(command == commands[0] for command in commands) else [],
        "environment": _common([work.environment for work in works]),
        "variants": _variants(works),
        "warnings": [_of_variant(caveat, work) for work in works for caveat in work.warnings],
    }


def _common(environments: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The keys of the environments that all of them have with the same value."""
    return {
        key: value for key, value in environments[0].items() if all(environment.get(key) == value for environment in environments)
    }


def _variants(works: Sequence[ElasticitySummary]) -> list[VariantManifest]:
    """Each cluster once, however often it was measured."""
    return list({variant.id: variant for work in works for variant in work.variants}.values())


def _of_variant(caveat: Caveat, work: ElasticitySummary) -> Caveat:
    return caveat.model_copy(update={"variant": work.variants[0].id})


def judged(claim: Claim, evidence: Evidence) -> JudgedClaim:
    """What summaries say of a claim."""
    return judged_by(claim, evidence, {})


def _figures(evidence: Evidence) -> list[TransitionFigure]:
    """Each figure of each role and transition, with its interval over repetitions."""
    found = []
    for role, transition, figure in evidence.by_place:
        interval = evidence.mean(role, transition, figure) if figure in FIGURES and transition >= 0 else None
        if interval is not None:
            found.append(TransitionFigure(role=role, transition=transition, figure=figure, **asdict(interval)))
    return found
