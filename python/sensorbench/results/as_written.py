"""Parts of files whose keys are known to the type checker alone."""

from typing import Any

from pydantic import BeforeValidator, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema


class AsWritten:
    """Marks a TypedDict in a model that is taken as it was written: its keys are those of today, of which results of earlier versions may lack
    some, and have others. The JSON Schema says no more than that it is an object.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Any object."""
        del source, handler
        return core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema())


# Keys of workloads in results of earlier versions, and what they are called now.
_WORKLOAD_KEYS = {"warm_up": "warmup", "warm_up_s": "warmup_s", "repeat": "repetitions"}
# Keys of runs, in their manifests and in summaries.
_RUN_KEYS = {"repeat": "repetition"}


def _renamed(content: dict[str, Any], keys: dict[str, str]) -> dict[str, Any]:
    return {keys.get(key, key): value for key, value in content.items()}


def with_present_run_keys(content: Any) -> Any:
    """What an earlier version wrote of a run, in the words of today."""
    return _renamed(content, _RUN_KEYS) if isinstance(content, dict) else content


def _with_present_keys(content: Any) -> Any:
    """A workload of an earlier version in the words of today. A warm-up was a number of operations there, or a length of time; 0 was none."""
    if not isinstance(content, dict):
        return content
    renamed = _renamed(content, _WORKLOAD_KEYS)
    return {**renamed, "warmup": "0"} if renamed.get("warmup") == 0 else renamed


# Marks a workload in a manifest or a summary, besides `AsWritten`: whoever reads it finds the keys of today.
PresentKeys = BeforeValidator(_with_present_keys)
