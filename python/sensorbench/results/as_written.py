"""Parts of files whose keys are known to the type checker alone."""

from typing import Any

from pydantic import GetCoreSchemaHandler
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
