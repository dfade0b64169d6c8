"""What makes the work of two comparisons the same: the dataset, the operations and the workload, whatever they are called."""

import hashlib
import json
from collections.abc import Mapping

from sensorbench.results import ComparisonManifest
from sensorbench.runner import Workload

# What of a workload changes no operation: how often it is run, and what is kept of it.
CHANGES_NO_OPERATION = frozenset({"repetitions", "log", "answers"})
# Without them a workload is what it was before there were such keys: digests are kept in histories.
_MAY_BE_LEFT_OUT = frozenset({"delivery", "freshness", "retention"})
# What a workload has that does not say otherwise; earlier versions left out keys that they did not know.
_DEFAULT_WORKLOAD = Workload(mix={"any": 1}, operations=1).model_dump(mode="json", by_alias=True)


def workload_of(manifest: ComparisonManifest) -> Mapping[str, object]:
    """The keys of a comparison's workload, with those that it does not say."""
    return {**_DEFAULT_WORKLOAD, **manifest.plan.workload}


def work_digest(manifest: ComparisonManifest) -> str:
    """SHA-256 of the work of a comparison: equal for all comparisons that may be set beside one another.

    Args:
        manifest: of the comparison.

    Returns:
        64 hexadecimal digits. Names and titles, repetitions and what is logged do not count; schemas and databases do not either.

    """
    dataset, plan = manifest.plan.dataset, manifest.plan
    content = {
        # Datasets of earlier versions have no fingerprint.
        "dataset": dataset.get("fingerprint") or {"name": dataset["name"], "relations": dataset["relations"]},
        "operations": sorted(plan.operations),
        "workload": {
            key: value
            for key, value in workload_of(manifest).items()
            if key not in CHANGES_NO_OPERATION and not (key in _MAY_BE_LEFT_OUT and value is None)
        },
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()
