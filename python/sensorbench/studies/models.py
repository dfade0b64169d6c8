"""Each kind of system with a model made for the questions and with a generic one: which part of a difference is the model's."""

from dataclasses import asdict

from sensorbench.results.summary.claims import MeasuredFigure
from sensorbench.results.summary.comparison import ModelComparison, ModelFigure
from sensorbench.studies.study import Evidence, Models


def compared_models(models: dict[str, Models], evidence: Evidence, operations: list[str]) -> list[ModelComparison]:
    """For each question and kind of system whose two models were measured: both figures, and how many times as long the generic
    one takes.
    """
    measured = {kind: model for kind, model in models.items() if {model.shaped, model.generic} <= evidence.roles.keys()}
    return [_compared(operation, kind, model, evidence) for operation in operations for kind, model in measured.items()]


def _compared(operation: str, kind: str, model: Models, evidence: Evidence) -> ModelComparison:
    ratio = evidence.contrast([(model.generic, operation, 1.0), (model.shaped, operation, -1.0)])
    return ModelComparison(
        operation=operation,
        kind=kind,
        shaped=_figure(model.shaped, evidence, operation),
        generic=_figure(model.generic, evidence, operation),
        ratio=MeasuredFigure(**asdict(ratio)) if ratio else None,
    )


def _figure(role: str, evidence: Evidence, operation: str) -> ModelFigure:
    interval = evidence.contrast([(role, operation, 1.0)])
    return ModelFigure(variant=evidence.roles[role], latency_s=interval.value if interval else None)
