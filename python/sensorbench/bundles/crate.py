"""RO-Crate 1.1 metadata of a bundle (https://w3id.org/ro/crate/1.1): JSON-LD that archives and search engines read."""

import json
from collections.abc import Iterable
from typing import Any

from sensorbench.results.bundle import CRATE_FILE, INDEX_FILE, BundleIndex
from sensorbench.results.summary.envelope import Summary

_CONTEXT = "https://w3id.org/ro/crate/1.1/context"
_TYPES = {
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
    "toml": "application/toml",
    "hlog": "text/plain",
    "jsonl": "application/jsonl",
}


def crate_of(index: BundleIndex, summary: Summary[Any]) -> bytes:
    """The metadata of a bundle as JSON-LD.

    Args:
        index: of the bundle; the metadata themselves are not listed in it yet.
        summary: of the results.

    """
    files = [{"@id": file.path} for file in index.files]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "identifier": index.id,
        "name": index.title,
        "description": f"Results of sensorbench of kind {index.results}, measured with version {index.version}.",
        "datePublished": (index.finished or index.created).isoformat(),
        "license": {"@id": "#license"},
        "hasPart": [{"@id": INDEX_FILE}, *files],
        "mentions": {"@id": "#measurement"},
    }
    measurement = {
        "@id": "#measurement",
        "@type": "CreateAction",
        "name": "The measurement",
        "description": " ".join(summary.command),
        "startTime": index.created.isoformat(),
        **({"endTime": index.finished.isoformat()} if index.finished else {}),
        "instrument": {"@id": "#sensorbench"},
        "result": {"@id": "./"},
    }
    dataset = getattr(summary.result, "dataset", None)
    of_dataset = dataset.get("license") if isinstance(dataset, dict) else None
    license_ = {
        "@id": "#license",
        "@type": "CreativeWork",
        "name": "Licence of the dataset that was measured with",
        "description": of_dataset or "The results do not say.",
    }
    software = {"@id": "#sensorbench", "@type": "SoftwareApplication", "name": "sensorbench", "version": index.version}
    descriptor = {
        "@id": CRATE_FILE,
        "@type": "CreativeWork",
        "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        "about": {"@id": "./"},
    }
    graph = [descriptor, root, measurement, license_, software, *_entities(index)]
    return (json.dumps({"@context": _CONTEXT, "@graph": graph}, indent=1, ensure_ascii=False) + "\n").encode()


def _entities(index: BundleIndex) -> Iterable[dict[str, str]]:
    """The files of a bundle as RO-Crate has them."""
    yield {"@id": INDEX_FILE, "@type": "File", "encodingFormat": "application/json"}
    for file in index.files:
        known = _TYPES.get(file.path.rpartition(".")[2])
        yield {"@id": file.path, "@type": "File", "contentSize": str(file.bytes), **({"encodingFormat": known} if known else {})}
