"""A study of factors: the rates are found, all cells are measured in rounds, then those that compare drafts with the default."""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from sensorbench._engine import Target
from sensorbench.benchmarks.factors.best_draft import OWN, best_draft
from sensorbench.benchmarks.factors.cells import Cell, Turn, add, described_cells
from sensorbench.benchmarks.factors.expected import Expected
from sensorbench.benchmarks.factors.measure import SharedRecords, failed, measure, probe, rates_of
from sensorbench.benchmarks.factors.plan import ADDING, FINDING, FactorsPlan
from sensorbench.benchmarks.factors.templates import Templates
from sensorbench.benchmarks.stress import attempted
from sensorbench.lifecycle import Benchmark, Description, RunContext
from sensorbench.progress import ProgressReporter
from sensorbench.results.factors import CellMeasurement, FactorsResult, FactorsWriter, continued, read_factors
from sensorbench.results.ownership import Claim, Owner
from sensorbench.results.planned import FactorsManifest, PlannedFactors
from sensorbench.runner import Servers, addresses_of, borrowed_cluster, check_namespace


class FactorsBenchmark(Benchmark[FactorsPlan, FactorsManifest, FactorsWriter]):
    """Finds the rates, then measures all cells in rounds. Servers are started for each measurement."""

    manifest = FactorsManifest
    writer = FactorsWriter
    can_resume = True

    def servers(self, plan: FactorsPlan, progress: ProgressReporter) -> AbstractContextManager[Servers]:
        """A cluster of the user's, which is put back at the end; all else is started for each measurement."""
        return borrowed_cluster(plan.target, progress)

    def check(self, plan: FactorsPlan, servers: Servers, owner: Owner) -> None:
        """Raises UsageError if the namespace at servers of the user's is taken, before anything is set there."""
        if plan.target.cluster is not None:
            check_namespace(Target(plan.target.text), Claim(owner, "create"))

    def describe(self, plan: FactorsPlan, servers: Servers) -> Description[PlannedFactors]:
        """The study, its cells, and what is done at each."""
        bench, options, records = plan.bench, plan.options, plan.file.records
        planned = PlannedFactors(
            workload={
                "records": bench.records,
                "fields": records.fields,
                "field_bytes": records.field_bytes,
                "distribution": records.distribution,
                "concurrency": bench.concurrency,
                "top_per_s": options.rate,
            },
            name=plan.name,
            target=Target(plan.target.text).url if plan.target.place == "url" else plan.target.text,
            nodes=len(addresses) if (addresses := addresses_of(plan.target)) else plan.file.nodes,
            cluster=addresses,
            parts=plan.parts,
            cells=described_cells(plan.cells()),
            scale=options.used_scale,
            sizes=dict(bench.at.sizes),
            step_s=plan.step_s,
            rounds=plan.rounds,
            looks=list(plan.looks),
            seed=options.seed,
            shares_records=plan.shares_records,
            budget_s=plan.deadline.budget_s if plan.deadline else None,
            left_out=dict(plan.left_out),
        )
        return Description(plan.file.title, planned)

    def check_same(self, before: FactorsManifest, after: FactorsManifest, folder: Path) -> FactorsManifest:
        """The manifest of the resumed study, with more parts and rounds if those are wanted."""
        return continued(before, after, folder)

    def execute(self, plan: FactorsPlan, context: RunContext[FactorsWriter]) -> None:
        """Measures the cells of all parts, then those that compare the study's own draft with the default."""
        cells, writer = plan.cells(), context.writer
        templates = Templates(plan.bench, context.owner, cells, writer.template_folder, context.progress)
        with templates:
            at_work = _AtWork(plan, writer, context.progress, templates)
            at_work.expect_as_before()
            at_work.find_rates()
            for rounds in plan.stages:
                at_work.measure_stage(rounds)
            if not plan.groups_of_budget:
                at_work.measure_best_draft()


@dataclass(frozen=True)
class _AtWork:
    """A resumed study."""

    plan: FactorsPlan
    writer: FactorsWriter
    progress: ProgressReporter
    templates: Templates

    def expect_as_before(self) -> None:
        """Has the deadline expect that work takes as long as it did when the study began."""
        for kind, took_s in self.writer.manifest.plan.took_s.items():
            if self.plan.deadline is not None:
                self.plan.deadline.note(max(took_s), kind)

    def find_rates(self) -> None:
        """The rates of each load: shares of what the default takes, unless the user has said."""
        plan, loads = self.plan, self.plan.file.loads
        if self.writer.manifest.plan.rates:
            return
        if plan.options.rate is not None:
            top = plan.options.rate
            self.writer.update_plan(
                rates={name: [top * share / max(load.shares) for share in load.shares] for name, load in loads.items()}
            )
            return
        begun_s = time.monotonic()
        with self.progress.task("what the default takes") as task:
            default = plan.bench.at.configuration(plan.file.default)
            quiet = ProgressReporter(quiet=True)
            reached = probe(plan.bench, default, self.writer.probe_folder(), plan.options.seed, quiet)
            task.end(f"{reached['write']:,.0f} writes/s, {reached['read']:,.0f} reads/s")
        self.writer.update_plan(reached=reached, rates={name: rates_of(load, reached) for name, load in loads.items()})
        self._note(FINDING, time.monotonic() - begun_s)

    def measure_stage(self, rounds: range) -> None:
        """Measures what is left of some rounds, group by group."""
        before = self._result()
        turns = [turn for group in self.plan.groups() for turn in self.plan.turns_left(before, rounds, group)]
        if rounds.start > 1:
            needed = len({turn.cell.id for turn in turns})
            self.progress.say(
                f"look after round {rounds.start - 1}: {needed} of {len(self.plan.cells())} configurations are measured until round "
                f"{rounds.stop - 1}; what claims need of the others is decided, or measured already"
            )
        self._measure_all(turns)

    def measure_best_draft(self) -> None:
        """Measures the study's own draft."""
        cells = self._cells_of_best_draft()
        self._measure_all(self.plan.turns_left(self._result(), self.plan.stages[0], cells))

    def _result(self) -> FactorsResult:
        return read_factors(self.writer.folder)

    def _measure_all(self, turns: Sequence[Turn]) -> None:
        """Measures cells. Records that they do not share any more are removed."""
        for place, turn in enumerate(turns):
            self._measure(turn)
            self.templates.keep_for(turns[place + 1 :])

    def _cells_of_best_draft(self) -> list[Cell]:
        """The cells of the study's own draft: under the loads of the part that has the paper's; none if it is the default."""
        file, at = self.plan.file, self.plan.bench.at
        part = file.draft_part
        if part not in self.plan.parts:
            return []
        own = best_draft(file, self._result())
        if not own.changed:
            return []
        settings = at.configuration({**file.default, **own.changed})
        cells = self.plan.cells()
        mine = [add(cells, load, settings, part, OWN, apart=True) for load in file.parts[part].loads]
        self.writer.update_plan(cells=described_cells(cells))
        return [cell for cell in mine if cell.levels == [(part, OWN)]]

    def _measure(self, turn: Turn) -> None:
        cell, deadline = turn.cell, self.plan.deadline
        described = "; ".join(f"{part}: {level}" for part, level in cell.levels)
        shares = self.writer.manifest.plan.shares_records and not self.templates.adds(cell)
        if deadline is not None:
            adds = [ADDING] if shares and not self.templates.is_made(turn) else []
            deadline.check(f"round {turn.round} of {cell.id}", cell.load, *adds)
        # Cells of one round have the same operations, those of another one have others.
        seed = self.plan.options.seed + 1000 * turn.round
        records, reason = attempted(lambda: self._records(turn, seed)) if shares else (None, None)
        with self.progress.task(f"round {turn.round}, {cell.load}, {described}") as task:
            folder = self.writer.new_folder(cell.id, turn.round)
            measured = self._measured(turn, folder, seed, records) if reason is None else failed(cell, turn.round, seed, reason)
            self.writer.write_measurement(folder, measured)
            task.end(f"failed: {measured.reason}" if measured.outcome == "failed" else f"{measured.took_s:.0f} s")
        if measured.outcome == "measured":
            self._note(cell.load, measured.took_s)

    def _measured(self, turn: Turn, folder: Path, seed: int, records: SharedRecords | None) -> CellMeasurement:
        rates = self.writer.manifest.plan.rates[turn.cell.load]
        quiet = ProgressReporter(quiet=True)
        return measure(self.plan.bench, turn.cell, rates, folder, round_=turn.round, seed=seed, reporter=quiet, records=records)

    def _records(self, turn: Turn, seed: int) -> SharedRecords:
        """The records with which the servers of a cell start. Raises FailedError and EngineError."""
        begun_s, is_made = time.monotonic(), self.templates.is_made(turn)
        records = self.templates.records_for(turn, seed)
        if not is_made:
            self._note(ADDING, time.monotonic() - begun_s)
        return records

    def _note(self, kind: str, took_s: float) -> None:
        """Puts down how long work of a kind took, and says at its first time how long the rest takes by all that was measured."""
        before = self.writer.manifest.plan.took_s
        self.writer.update_plan(took_s={**before, kind: [*before.get(kind, []), took_s]})
        if self.plan.deadline is not None:
            self.plan.deadline.note(took_s, kind)
            if kind not in before:
                until = "until the next look" if self.plan.looks else "of all"
                self.progress.say(
                    f"{kind}: {took_s:.0f} s; by what was measured so far, the rest {until} takes about {_length(self._left_s())}"
                )

    def _left_s(self) -> float:
        """How long what is left until the next look takes (s), by what was measured so far."""
        turns, _ = self.plan.turns_until_look(self._result())
        return Expected(self.plan, self.writer.manifest.plan.took_s).turns_s(turns, self.templates.made)


def _length(time_s: float) -> str:
    return f"{time_s / 60:.0f} min" if time_s < 7200.0 else f"{time_s / 3600:.1f} h"
