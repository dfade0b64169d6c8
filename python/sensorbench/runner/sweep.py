"""Sweeps: each side of a comparison once for each choice of some factors: options of targets, parameters of schemas, or the batches that are loaded."""

from dataclasses import replace
from itertools import product

from sensorbench.errors import UsageError
from sensorbench.runner.variants import VariantSpec
from sensorbench.runner.write_batches import KEYS, check_batches, chosen_batches
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
    """The sides with each choice of the factors. A factor that a schema has as a parameter is that; else it says in which batches rows are
    loaded, or is an option of the target. Choices that come to the same are one: a recommended number may be among the others.
    """
    choices = [dict(zip(factors, values, strict=True)) for values in product(*factors.values())]
    return [
        side for spec in specs for side in {side.label: side for side in (_chosen(spec, choice) for choice in choices)}.values()
    ]


def _chosen(spec: VariantSpec, choice: dict[str, str]) -> VariantSpec:
    side, shown = spec, dict(choice)
    for key, value in choice.items():
        if key in spec.schema.file.parameters:
            side = replace(side, schema=side.schema.with_parameters({key: _value(spec, key, value)}))
        elif key in KEYS:
            batches, shown[key] = chosen_batches(side, key, value)
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
