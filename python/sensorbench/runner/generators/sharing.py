"""What load generators cannot share, said before anything is started."""

from collections.abc import Iterable

from sensorbench.errors import UsageError
from sensorbench.options import OptionModel, option
from sensorbench.results.engine_plan import OperationsPlan
from sensorbench.runner.registered import Database

MAX_GENERATORS = 64


class GeneratorOptions(OptionModel):
    """How many processes send the load."""

    generators: int = option(
        1,
        "Load generators: processes of this machine that share the operations, the arrivals and the requests in flight. Each has --threads of its own.",
        ge=1,
        le=MAX_GENERATORS,
    )


def check_can_share(generators: int, concurrency: int, databases: Iterable[Database]) -> None:
    """Raises UsageError where so many load generators cannot share a load."""
    if generators == 1:
        return
    for database in databases:
        if not database.many_processes:
            raise UsageError(
                f"--generators {generators}: {database.name} lives in the process of the client, and no other may use its data meanwhile; "
                "expected a database that several processes may use"
            )
    if generators > concurrency:
        raise UsageError(
            f"--generators {generators}: there are at most {concurrency} requests in flight, and each load generator needs one; "
            f"expected --concurrency of {generators} or more, or fewer load generators"
        )


def check_can_share_operations(generators: int, plan: OperationsPlan) -> None:
    """Raises UsageError where operations read what the run itself writes: no load generator knows how far the others are."""
    if generators > 1 and any(_reads_what_is_written(source) for source in plan.get("parameter_sources", [])):
        raise UsageError(
            f"--generators {generators}: operations of this mix choose among what the run itself writes, and no load generator knows how far the "
            "others are; leave out those operations, or --generators"
        )


def _reads_what_is_written(source: object) -> bool:
    if not isinstance(source, dict):
        return False
    records = source.get("records") or {}
    return "written" in source or records.get("grown") is not None
