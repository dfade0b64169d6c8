"""Sweeps: each side of a comparison once for each choice of some factors, which are options of targets or parameters of schemas."""

from dataclasses import replace
from itertools import product

from sensorbench.errors import UsageError
from sensorbench.runner.variants import VariantSpec
from sensorbench.schemas.schema_file import ParameterValue


def parse_sweeps(texts: list[str]) -> dict[str, list[str]]:
    """The factors of `consistency=one,quorum`, with their values. Raises UsageError."""
    factors: dict[str, list[str]] = {}
    for text in texts:
        key, equals, values = text.partition("=")
        listed = [value.strip() for value in values.split(",")]
        if not equals or not key.strip() or not all(listed):
            raise UsageError(f"--sweep {text}: expected KEY=VALUE,VALUE, for example consistency=one,quorum")
        if key.strip() in factors:
            raise UsageError(f"--sweep {text}: {key.strip()} is swept twice; name all of its values at once")
        factors[key.strip()] = listed
    return factors


def swept(specs: list[VariantSpec], factors: dict[str, list[str]]) -> list[VariantSpec]:
    """The sides with each choice of the factors. A factor that a schema has as a parameter is that; else it is an option of the
    target.
    """
    choices = [dict(zip(factors, values, strict=True)) for values in product(*factors.values())]
    return [_chosen(spec, choice) for spec in specs for choice in choices]


def _chosen(spec: VariantSpec, choice: dict[str, str]) -> VariantSpec:
    target, schema = spec.target, spec.schema
    for key, value in choice.items():
        if key in schema.file.parameters:
            schema = schema.with_parameters({key: _value(spec, key, value)})
        else:
            target = target.with_option(key, value)
    label = "-".join(filter(None, [spec.label, *(f"{key}={value}" for key, value in choice.items())]))
    return replace(spec, target=target, schema=schema, label=label)


def _value(spec: VariantSpec, key: str, text: str) -> ParameterValue:
    """The value of a parameter that is written like this."""
    known = spec.schema.file.parameters[key].values
    found = [value for value in known if str(value).lower() == text.lower()]
    if not found:
        raise UsageError(f"--sweep {key}={text}: {spec.schema.path} has it at {', '.join(map(str, known))}")
    return found[0]
