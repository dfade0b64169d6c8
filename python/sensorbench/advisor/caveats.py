"""What must be known of results before anybody acts on them."""

from collections.abc import Sequence

from sensorbench.advisor.recommend import Recommendation
from sensorbench.advisor.source import Source
from sensorbench.analysis.candidate import Candidate, Measured
from sensorbench.analysis.use_cases import Outcome

# A measured range that is this many times as long as the one that was requested, or as short, is reported.
FAR = 2.0


def caveats_of_recommendation(recommendation: Recommendation) -> list[str]:
    """What must be known of a recommendation."""
    ranking = recommendation.ranking
    candidates = [place.candidate for place in ranking.places]
    return [
        *_of_source(recommendation.source),
        *_of_layouts(candidates, ranking.questions),
        *_of_range(
            recommendation, [measurement for candidate in candidates for measurement in candidate.measured(ranking.questions)]
        ),
    ]


def caveats_of_use_cases(source: Source, outcomes: Sequence[Outcome]) -> list[str]:
    """What must be known of the use cases."""
    questions = dict.fromkeys(question for outcome in outcomes for question in outcome.ranking.questions)
    return [*_of_source(source), *_of_layouts(source.gathered.candidates, list(questions))]


def _of_source(source: Source) -> list[str]:
    gathered = source.gathered
    origins = list(gathered.origins.values())
    measured = [f"measured on {origin.date} with {origin.dataset}, on {origin.machine}" for origin in origins]
    if source.kind != "results":
        whose = "; not your data: run a study on yours, and name its folder: sensorbench recommend FOLDER"
        what = "reference results shipped with sensorbench" if source.kind == "reference" else source.described
        measured = [f"{what}, {name}{whose}" for name in measured]
    scaled = [
        f"measured at scale {origin.scale:g} ({origin.readings:,} readings): larger data may rank otherwise, and take less a reading"
        for origin in origins
        if origin.scale < 1.0
    ]
    return list(dict.fromkeys([*measured, *scaled, *gathered.notes]))


def _of_layouts(candidates: Sequence[Candidate], questions: Sequence[str]) -> list[str]:
    found = []
    embedded = _targets([candidate for candidate in candidates if candidate.embedded])
    if embedded and any(not candidate.embedded for candidate in candidates):
        found.append(f"embedded, so that no network is in the figures, unlike in those of servers: {embedded}")
    in_memory = _targets([candidate for candidate in candidates if candidate.in_memory])
    if in_memory:
        found.append(f"all data are in memory, and bytes per reading are of memory: {in_memory}")
    if any(
        measurement.is_mixed for candidate in candidates for measurement in (*candidate.writes, *candidate.measured(questions))
    ):
        found.append(
            "written and read at once: rates are what each kind would reach alone, if it were as slow as it was together with the others"
        )
    return found


def _targets(candidates: Sequence[Candidate]) -> str:
    return ", ".join(dict.fromkeys(candidate.target for candidate in candidates))


def _of_range(recommendation: Recommendation, measured: Sequence[Measured]) -> list[str]:
    """Whether what was read is as long as what was asked for."""
    wanted = recommendation.options.needs.range_readings
    rows = [measurement.rows for measurement in measured if measurement.rows]
    if wanted is None or not rows or 1.0 / FAR <= wanted / rows[0] <= FAR:
        return []
    return [f"ranges of {wanted:,.0f} readings are needed; the nearest ranges that were measured have {rows[0]:,.0f} rows"]
