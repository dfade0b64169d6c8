"""What was found in histories of registers, in words."""

from typing import Any

from sensorbench.report import words
from sensorbench.results.summary.guarantees import RegisterGuarantees

TITLES = {
    "lost_writes": "lost writes",
    "stale_reads": "stale reads",
    "non_monotonic_reads": "non-monotonic reads",
    "never_written": "values never written",
    "failed_writes_seen": "failed writes seen",
    "possibly_stale_reads": "possibly stale reads",
}


def unit(name: str) -> str:
    """What a finding is counted in."""
    return "keys" if name == "lost_writes" else "reads"


def ages(age_ns: dict[str, int] | None) -> list[str]:
    """Quantiles of ages: p50, p99 and max."""
    return [words.duration(age / 1e9) for age in (age_ns or {}).values()]


def promise(of_setting: RegisterGuarantees, name: str) -> str:
    """Whether a setting promises that something does not occur, and whether that was broken."""
    if of_setting.promised is None:
        return "nothing known is promised"
    if name not in of_setting.promised:
        return ""
    if name in of_setting.broken:
        return "promised not to occur: broken"
    return "promised not to occur" if of_setting.promised[name].is_made else "not promised"


def told(name: str, example: dict[str, Any]) -> str:
    """An example in a sentence, with key, times and the operations involved."""
    where = f"key {example['key']!r}"
    if name == "lost_writes":
        return (
            f"{where}: {_operation(example['write'])}; older reads at the end: {example['stale_reads_at_end']:,}, "
            f"the last: {_operation(example['last_stale_read'])}, {example['behind']:,} behind"
        )
    read = f"{where}: {_operation(example['read'])}"
    if name in {"stale_reads", "possibly_stale_reads"}:
        age = words.duration(example["age_ns"] / 1e9)
        newer = _operation(example["first_newer_write"])
        return f"{read}, {age} after a newer value was acknowledged ({newer}), {example['behind']:,} behind"
    if name == "non_monotonic_reads":
        return f"{read}, after it had a newer one: {_operation(example['earlier_read'])}"
    if name == "failed_writes_seen":
        return f"{read}, of a write that failed: {_operation(example['write'])}"
    return f"{read}, which nobody wrote"


def _operation(operation: dict[str, Any]) -> str:
    value = "null" if operation["value"] is None else operation["value"]
    until = "the end" if operation["ended_ns"] is None else operation["ended_ns"]
    return f"process {operation['process']} {operation['f']} {value} from {operation['invoked_ns']} to {until} ns"
