"""The study as a whole: what it runs if nothing else is said, its claims, and the summary with them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sensorbench import toml_file
from sensorbench.benchmarks.mapreduce import summarise_mapreduce
from sensorbench.claims import Claim, Figure, judged_by, load_claims, roles_of
from sensorbench.results.mapreduce import MapReduceResult
from sensorbench.results.summary.mapreduce import MapReduceSummary, PrintedFindings, PrintedGain
from sensorbench.results.summary.published import PublishedTable
from sensorbench.studies.mapreduce.claims import Evidence, judged_as_printed, printed_gains
from sensorbench.studies.published import Found, found_in, interval_in, measured_by, printed_rows, published_of
from sensorbench.wording import counted

FOLDER = Path(__file__).parent


class Role(toml_file.FileModel):
    """A database: what the source calls it, and its names here."""

    title: str
    databases: list[str]


class StudyFile(toml_file.FileModel):
    """`study.toml`."""

    title: str
    question: str
    source: str
    targets: list[str]
    dataset: str
    nodes: list[int]
    executions: int
    cores: int
    memory: str
    # Of servers that the lab starts, by database: KEY=VALUE.
    server_settings: dict[str, list[str]]
    roles: dict[str, Role]


@dataclass(frozen=True)
class MapReduceStudy:
    """The study: what it runs, its claims, and what the paper has."""

    name: str
    file: StudyFile
    claims: tuple[Claim, ...]
    printed: Mapping[str, PrintedGain]

    def summarise(self, summary: MapReduceSummary) -> MapReduceSummary:
        """The summary of executions with the claims, and with what the paper has in both readings."""
        roles = self.file.roles
        titles = {name: role.title for name, role in roles.items()}
        evidence = Evidence(summary, {name: role.databases for name, role in roles.items()}, titles)
        printed = PrintedFindings(gains=dict(self.printed), claims=judged_as_printed(self.printed))
        claims = [judged_by(claim, evidence.about(roles_of(claim)), {}) for claim in self.claims]
        result = summary.result.model_copy(update={"printed": printed})
        return summary.model_copy(update={"claims": claims, "published": self._published(evidence), "result": result})

    def _published(self, evidence: Evidence) -> list[PublishedTable]:
        """The tables of the paper with the means over executions."""
        published = published_of(self.name)
        return published.tables(measured_by(partial(self._found, evidence), partial(interval_in, evidence))) if published else []

    def _found(self, evidence: Evidence, figure: Figure) -> Found:
        """What was measured of a figure, or why it was not."""
        found = found_in(evidence, figure)
        system, workers, *_ = figure.arguments
        return (
            found
            if found.why or found.value is not None
            else Found(None, "not run", f"{system} was not executed with {counted(int(workers), 'node')}")
        )


def _load() -> MapReduceStudy:
    file = toml_file.load(FOLDER / "study.toml", StudyFile)
    return MapReduceStudy(FOLDER.name, file, load_claims(FOLDER / "claims.toml"), printed_gains(printed_rows(FOLDER)))


MAPREDUCE = _load()


def summarise_mapreduce_study(result: MapReduceResult) -> MapReduceSummary:
    """The summary of results of the study, with its claims."""
    return MAPREDUCE.summarise(summarise_mapreduce(result))
