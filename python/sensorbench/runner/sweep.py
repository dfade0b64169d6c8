"""Sweeps: each side of a comparison once for each choice of some factors: options of targets, parameters of schemas, or the batches that are loaded."""

from dataclasses import replace
from itertools import product

from sensorbench.errors import UsageError
from sensorbench.runner.variants import VariantSpec
from sensorbench.runner.write_batches import (
    KEYS,
    WITH_DEFAULT_LEVELS,
    DefaultLevels,
    check_batches,
    chosen_batches,
    default_levels,
)
from sensorbench.schemas.schema_file import ParameterValue

_EXPECTED = f"expected KEY=VALUE,VALUE, for example consistency=one,quorum; {' and '.join(WITH_DEFAULT_LEVELS)} alone have levels of their own"


def parse_sweeps(texts: list[str]) -> dict[str, list[str]]:
    """The factors of `consistency=one,quorum`, with their values; none for a name alone, such as `batch_rows`. Raises UsageError."""
    factors: dict[str, list[str]] = {}
    for text in texts:
        key, equals, values = text.partition("=")
        listed = [value.strip() for value in values.split(",")] if equals else []
        if not key.strip() or not all(listed):
            raise UsageError(f"--sweep {text}: {_EXPECTED}")
        if key.strip() in factors:
            raise UsageError(f"--sweep {text}: {key.strip()} is swept twice; name all of its values at once")
        factors[key.strip()] = listed
    return factors


def swept(specs: list[VariantSpec], factors: dict[str, list[str]]) -> list[VariantSpec]:
    """The sides with each choice of the factors. A factor that a schema has as a parameter is that; else it says in which batches rows are
    loaded, or is an option of the target. Choices that come to the same are one: a recommended number may be among the others.
    Rows of a batch and writers without values have default levels, which go by the target.
    """
    return [side for spec in specs for side in _sides(spec, factors).values()]


def _sides(spec: VariantSpec, factors: dict[str, list[str]]) -> dict[str, VariantSpec]:
    """The sides of one spec, by their labels."""
    defaults = {key: _default_levels(spec, key) for key, values in factors.items() if not values}
    levels = [values or [str(level) for level in defaults[key].levels] for key, values in factors.items()]
    chosen = (_chosen(spec, dict(zip(factors, values, strict=True)), defaults) for values in product(*levels))
    return {side.label: side for side in chosen}


def _default_levels(spec: VariantSpec, key: str) -> DefaultLevels:
    if key not in WITH_DEFAULT_LEVELS or key in spec.schema.file.parameters:
        raise UsageError(f"--sweep {key}: {_EXPECTED}")
    return default_levels(spec, key)


def _chosen(spec: VariantSpec, choice: dict[str, str], defaults: dict[str, DefaultLevels]) -> VariantSpec:
    side, shown = spec, dict(choice)
    for key, value in choice.items():
        if key in spec.schema.file.parameters:
            side = replace(side, schema=side.schema.with_parameters({key: _value(spec, key, value)}))
        elif key in KEYS:
            batches, shown[key] = chosen_batches(side, key, value)
            if key in defaults:
                batches = replace(batches, default_levels=(*batches.default_levels, defaults[key]))
            side = replace(side, batches=batches)
        else:
            side = replace(side, target=side.target.with_option(key, value))
    check_batches(side)
    return replace(side, label="-".join(filter(None, [spec.label, *(f"{key}={value}" for key, value in shown.items())])))


def _value(spec: VariantSpec, key: str, text: str) -> ParameterValue:
    """The value of a parameter that is written like this."""
    known = spec.schema.file.parameters[key].values
    found = [value for value in known if str(value).lower() == text.lower()]
    if not found:
        raise UsageError(f"--sweep {key}={text}: {spec.schema.path} has it at {', '.join(map(str, known))}")
    return found[0]
