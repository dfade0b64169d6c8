"""Which machine results come from, by what figures depend on."""

import hashlib
import json

from sensorbench.results.described import Environment

_GIB = 1 << 30


def machine_of(environment: Environment) -> tuple[str, str]:
    """The machine of some results.

    Args:
        environment: what their manifest says of it.

    Returns:
        A fingerprint of 12 hexadecimal digits, equal for machines of one type, and the machine in words. Kernel, system and free disk do not
        count: they change on one machine, and are kept as versions.

    """
    limit = environment.get("memory_limit_bytes")
    memory = round((limit or environment.get("memory_bytes") or 0) / _GIB)
    processor, allowed = environment.get("processor") or "CPU not known", environment.get("processors_allowed")
    parts = {
        "processor": processor,
        "processors": allowed or environment.get("processors"),
        "memory_gib": memory,
        "governor": environment.get("frequency_governor"),
        "virtual": environment.get("virtual_machine"),
    }
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    return digest[:12], f"{parts['processors']} × {processor}, {memory} GiB"
