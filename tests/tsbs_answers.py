"""Experiments over the queries of TSBS, whose answers are compared with DuckDB's."""

import json
from collections.abc import Collection, Sequence
from pathlib import Path

from sensorbench.schemas import load_operations
from tests.conftest import Cli

# Windows of 12 h lie within it, those of 24 h are all of it; each minute of every second one has a row of a host.
DEVOPS_NAME = "tsbs-devops:hosts=9,duration=13h,interval=2m"
# Windows of 24 h lie within it; each stretch of ten minutes has twelve rows of a truck, and most tanks are nearly empty at the end.
IOT_NAME = "tsbs-iot:trucks=16,duration=1515m,interval=50s"


def check_answers(
    cli: Cli,
    folder: Path,
    dataset: str,
    operations: str,
    targets: Sequence[tuple[str, str]],
    *,
    cannot: Collection[str] = (),
    use_case: str = "",
) -> None:
    """Each query is executed, but those that cannot be expressed; all answers are compared with DuckDB's from the dataset. Schemas that have
    tables of several use cases make those of `use_case`, if one is named.
    """
    queries = [name for name in load_operations(operations).operation if name not in cannot]
    entries = "".join(
        f'[[target]]\nurl = "{url}"\nschema = "{schema}"\n'
        + (f'parameters = {{ use_case = "{use_case}" }}\n' if use_case and schema == "wide" else "")
        for url, schema in targets
    )
    mix = "\n".join(f"{name} = 1" for name in queries)
    folder.mkdir(exist_ok=True)
    path = folder / "tsbs.toml"
    path.write_text(
        f'dataset = "{dataset}"\noperations = "{operations}"\n{entries}[workload]\norder = "in turn"\noperations = {2 * len(queries)}\n'
        f"repetitions = 1\n[workload.mix]\n{mix}\n",
        encoding="utf-8",
    )
    ended = cli("run", path, "--out", folder / "out", "--no-open")
    assert ended.exit_code == 0, ended.err
    summary = json.loads((folder / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary["answers_equal"] is True
    answers = summary["result"]["answers"]
    assert set(answers) == set(queries)
    assert all(found["compared_with_reference"] > 0 for found in answers.values())
