"""Starting load generators, here or on hosts."""

from collections.abc import Sequence

from sensorbench.runner.generators.hosted import ClockedHost, HostedGenerator
from sensorbench.runner.generators.load_generator import LoadGenerator
from sensorbench.runner.generators.local import LocalGenerator


def started_generators(count: int, hosts: Sequence[ClockedHost]) -> list[LoadGenerator]:
    """So many load generators: on hosts, one after the other as often as needed; processes of this machine where there is none. Raises
    LostGeneratorError.
    """
    generators: list[LoadGenerator] = []
    try:
        for number in range(1, count + 1):
            generators.append(HostedGenerator(number, hosts[(number - 1) % len(hosts)]) if hosts else LocalGenerator(number))
    except BaseException:
        for generator in generators:
            generator.close()
        raise
    return generators
