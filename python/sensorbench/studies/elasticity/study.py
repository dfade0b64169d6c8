"""The study as a whole: what was measured of several clusters beside what the paper has, and the claims."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from sensorbench.claims import Claim, Figure, judged_by, load_claims, roles_of
from sensorbench.results.manifest import VariantManifest
from sensorbench.results.summary.claims import JudgedClaim
from sensorbench.results.summary.elasticity import (
    ComparedCluster,
    ComparedTransition,
    ElasticityComparisonFigures,
    ElasticityComparisonSummary,
    ElasticitySummary,
    Transition,
    TransitionFigure,
)
from sensorbench.results.summary.envelope import Caveat
from sensorbench.results.summary.published import PublishedTable
from sensorbench.studies.elasticity.evidence import Evidence, evidence_of
from sensorbench.studies.elasticity.stable import stable_clusters
from sensorbench.studies.elasticity.study_file import FOLDER, StudyFile, load_study_file
from sensorbench.studies.published import Found, found_in, interval_in, measured_by, published_of

TITLE = "Elasticity of databases"
# What the comparison shows of a change as it is in the summary of its work.
_SHOWN = (
    "number",
    "change",
    "nodes",
    "failed",
    "sets",
    "begun_at_s",
    "transfer_s",
    "noticed_s",
    "before",
    "stability",
    "dip",
    "data",
)
# Figures of the tables, in their order.
FIGURES = ("transfer_s", "additional_s", "total_s", "elasticity", "scalability", "av_s", "sd_s", "hottest_share")


@dataclass(frozen=True)
class ElasticityStudy:
    """What is done to which clusters, and the claims, each of which has a judge or says what it lacks."""

    name: str
    file: StudyFile
    claims: tuple[Claim, ...]

    @classmethod
    def load(cls) -> "ElasticityStudy":
        """The study in this folder of the package."""
        return cls(FOLDER.name, load_study_file(), load_claims(FOLDER / "claims.toml"))


ELASTICITY = ElasticityStudy.load()


def summarise(summaries: Sequence[tuple[str, ElasticitySummary]], *, left: Sequence[str] = ()) -> ElasticityComparisonSummary:
    """What several results say together, of which those of the same database are repetitions: the folder of each, and its summary. `left` are parts
    of the study that are not there yet.
    """
    roles, works = ELASTICITY.file.roles, [summary for _, summary in summaries]
    evidence = evidence_of(works, roles)
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
            transitions=[_compared(folder, summary, of) for folder, summary in summaries for of in summary.result.transitions],
            stable=stable_clusters(summaries),
            parts_left=list(left),
        ),
    )


def _compared(folder: str, work: ElasticitySummary, transition: Transition) -> ComparedTransition:
    """A change as the comparison shows it."""
    seen = transition.guarantees.seen if transition.guarantees else None
    return ComparedTransition(
        folder=folder,
        target=work.variants[0].target,
        lost_writes=seen["lost_writes"].count if seen else None,
        stale_reads=seen["stale_reads"].count if seen else None,
        **{name: getattr(transition, name) for name in _SHOWN},
    )


def _published(evidence: Evidence) -> list[PublishedTable]:
    """The tables of the paper with the means over repetitions."""
    published = published_of(ELASTICITY.name)
    conditions = (
        "The paper doubled clusters of 6, 12 and 24 nodes; its transitions are compared with the first, second and third here."
    )
    return (
        published.tables(measured_by(partial(_found, evidence), partial(interval_in, evidence)), conditions=conditions)
        if published
        else []
    )


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
    # A part that was continued with, or measured again, has this word besides.
    commands = [[word for word in work.command if word != "--resume"] for work in works]
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
    return judged_by(claim, evidence.about(roles_of(claim)), {})


def _figures(evidence: Evidence) -> list[TransitionFigure]:
    """Each figure of each role and transition, with its interval over repetitions."""
    found = []
    for role, transition, figure in evidence.by_place:
        interval = evidence.mean(role, transition, figure) if figure in FIGURES and transition >= 0 else None
        if interval is not None:
            found.append(TransitionFigure(role=role, transition=transition, figure=figure, **asdict(interval)))
    return found
