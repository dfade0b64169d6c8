"""Which datasets there are, and how one is named: shipped, generated, imported, or a user's own."""

import os
import re
import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from sensorbench.dataset import (
    article_model,
    azure_vm_noise,
    beijing_air_quality,
    bike_stations,
    cu_bems,
    iot_benchmark,
    machine_log,
    mapping,
    sensor_timelines,
    tsbs,
    tsbs_devops,
    tsbs_files,
    tsbs_iot,
    tsm,
    wikipedia,
)
from sensorbench.dataset.csv_rows import columns_of
from sensorbench.dataset.dataset import DESCRIPTION_FILE, KNOWN_ANSWERS_FILE, Dataset
from sensorbench.dataset.generated import WriteFiles, in_this_process
from sensorbench.dataset.parquet import SUFFIX
from sensorbench.errors import UsageError
from sensorbench.options import DEFAULT_SEED
from sensorbench.paths import cache_folder, check_is_free, remove_if_empty
from sensorbench.progress import ProgressReporter

# What a dataset of the cache is called while a process makes it.
_UNFINISHED = re.compile(r".+\.\d+\.unfinished")


@dataclass(frozen=True)
class Importer:
    """An importer of the original files of a published dataset: files, the folder, whether to skip bad rows, and who reports progress."""

    recognises: Callable[[Path], bool]
    import_files: Callable[[list[Path], Path, bool, ProgressReporter], Dataset]


class _OfCsvFiles(Protocol):
    """A module that imports CSV files, and knows them by their columns."""

    def recognises(self, columns: list[str]) -> bool: ...

    def import_files(self, files: list[Path], out: Path, *, skip_bad_rows: bool) -> Dataset: ...


def _of_csv_files(module: _OfCsvFiles) -> Importer:
    return Importer(
        lambda file: module.recognises(columns_of(file)),
        lambda files, out, skip, reporter: module.import_files(files, out, skip_bad_rows=skip),
    )


@dataclass(frozen=True)
class Generator:
    """A generator: the folder, the seed, the scale, and who writes the files."""

    generate: Callable[[Path, int, float, WriteFiles], Dataset]
    version: int


_TSBS: dict[str, Callable[[tsbs.TsbsParameters, Path, int, float, WriteFiles], Dataset]] = {
    **{name: partial(tsbs.generate, name) for name in (tsbs.CPU_ONLY, tsbs.CPU_SINGLE)},
    tsbs.DEVOPS: tsbs_devops.generate,
    tsbs.IOT: tsbs_iot.generate,
}
SHIPPED = {
    azure_vm_noise.NAME: azure_vm_noise.SHIPPED_FOLDER,
    beijing_air_quality.NAME: beijing_air_quality.SHIPPED_FOLDER,
    wikipedia.NAME: wikipedia.SHIPPED_FOLDER,
}
GENERATED = {
    cu_bems.NAME: Generator(cu_bems.generate, cu_bems.GENERATOR_VERSION),
    bike_stations.NAME: Generator(bike_stations.generate, bike_stations.GENERATOR_VERSION),
    **{
        name: Generator(partial(machine_log.generate, size), machine_log.GENERATOR_VERSION)
        for size, name in machine_log.DATASETS.items()
    },
    **{
        name: Generator(partial(sensor_timelines.generate, name), sensor_timelines.GENERATOR_VERSION)
        for name in sensor_timelines.DATASETS
    },
    **{name: Generator(article_model.generate, article_model.GENERATOR_VERSION) for name in article_model.DATASETS},
    **{name: Generator(partial(make, tsbs.TsbsParameters()), tsbs.GENERATOR_VERSION) for name, make in _TSBS.items()},
    iot_benchmark.NAME: Generator(
        partial(iot_benchmark.generate, iot_benchmark.IotParameters()), iot_benchmark.GENERATOR_VERSION
    ),
    **{name: Generator(partial(tsm.generate, preset), tsm.GENERATOR_VERSION) for name, preset in tsm.PRESETS.items()},
}
IMPORTERS = {
    # The first, because the others cannot look into what is not text.
    wikipedia.NAME: Importer(
        wikipedia.recognises, lambda files, out, skip, reporter: wikipedia.import_files(files, out, reporter=reporter)
    ),
    tsbs_files.NAME: Importer(
        tsbs_files.recognises,
        lambda files, out, skip, reporter: tsbs_files.import_files(files, out, skip_bad_rows=skip, reporter=reporter),
    ),
    azure_vm_noise.NAME: _of_csv_files(azure_vm_noise),
    beijing_air_quality.NAME: _of_csv_files(beijing_air_quality),
    cu_bems.NAME: _of_csv_files(cu_bems),
}


def generator_of(name: str) -> Generator | None:
    """The generator of a dataset, also of one whose name has parameters (`tsbs-cpu-only:hosts=10`); None if there is none.

    Raises:
        UsageError: for parameters that the generator does not have.

    """
    plain, colon, _ = name.partition(":")
    if colon and plain in _TSBS:
        return Generator(partial(_TSBS[plain], tsbs.parse_parameters(name)), tsbs.GENERATOR_VERSION)
    if colon and plain == iot_benchmark.NAME:
        parameters = iot_benchmark.parse_parameters(name)
        return Generator(partial(iot_benchmark.generate, parameters), iot_benchmark.GENERATOR_VERSION)
    if colon and plain in tsm.PRESETS:
        return Generator(partial(tsm.generate, tsm.parse_parameters(name)), tsm.GENERATOR_VERSION)
    return GENERATED.get(name)


def is_named(name: str) -> bool:
    """Whether a dataset is shipped or generated, by its name; else the name is that of a file or a folder."""
    return name in SHIPPED or name.partition(":")[0] in GENERATED


def open_dataset(name: str, *, scale: float = 1.0, seed: int = DEFAULT_SEED, reporter: ProgressReporter | None = None) -> Dataset:
    """A dataset; a generated or imported one is made in the cache first, once.

    Args:
        name: that of a dataset, the folder that one was imported or generated into, or a mapping file (.toml).
        scale: share of the whole that is used, above 0 and at most 1: of the span, of the sensors, or of the articles.
        seed: of generated data.
        reporter: reports progress, if given.

    Raises:
        UsageError: for a name that nothing has, a scale out of range, or a mapping that does not fit.

    """
    if not 0.0 < scale <= 1.0:
        raise UsageError(f"--scale {scale:g}: expected a share of the full span, above 0 and at most 1")
    reporter = reporter or ProgressReporter(quiet=True)
    if name in SHIPPED:
        return Dataset.at(SHIPPED[name], scale)
    if (generator := generator_of(name)) is not None:
        return _generated(name, generator, scale, seed, reporter)
    if name.endswith(".toml"):
        return Dataset.at(_imported(Path(name), reporter), scale)
    if Path(name).is_dir():
        return Dataset.at(Path(name), scale)
    known = ", ".join(sorted({*SHIPPED, *GENERATED}))
    raise UsageError(
        f"there is no dataset {name!r}; expected one of {known}, the folder of an imported one, or a mapping file (.toml)"
    )


def generate(name: str, out: Path, *, scale: float, seed: int, write: WriteFiles) -> Dataset:
    """Generates a dataset into a folder.

    Args:
        name: that of a generator.
        out: the folder; it is made if it is not there.
        scale: share of the whole, above 0 and at most 1.
        seed: equal seeds give equal bytes.
        write: writes the files, here or elsewhere.

    Raises:
        UsageError: for a name that no generator has, or a scale out of range.

    """
    generator = generator_of(name)
    if generator is None:
        raise UsageError(f"there is no generator {name!r}; expected one of {', '.join(GENERATED)}")
    if not 0.0 < scale <= 1.0:
        raise UsageError(f"--scale {scale:g}: expected a share of the full span, above 0 and at most 1")
    dataset = generator.generate(out, seed, scale, write)
    known_answers = Path(__file__).parent / name.replace("-", "_") / KNOWN_ANSWERS_FILE
    if known_answers.exists() and seed == DEFAULT_SEED:
        shutil.copyfile(known_answers, out / KNOWN_ANSWERS_FILE)
    return dataset


def _generated(name: str, generator: Generator, scale: float, seed: int, reporter: ProgressReporter) -> Dataset:
    # Names of folders have no signs that mean something in addresses and patterns.
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name)
    folder = cache_folder("datasets") / f"{plain}-v{generator.version}-seed{seed}-scale{scale:g}"
    return _made_once(
        folder, lambda unfinished: generate(name, unfinished, scale=scale, seed=seed, write=in_this_process(reporter))
    )


def _imported(mapping_file: Path, reporter: ProgressReporter) -> Path:
    folder = cache_folder("datasets") / f"{mapping_file.stem}-{mapping.inputs_fingerprint(mapping_file)}"
    if not (folder / DESCRIPTION_FILE).exists():
        reporter.say(f"importing the files of {mapping_file}")
    return _made_once(folder, lambda unfinished: mapping.import_mapping(mapping_file, [], unfinished, skip_bad_rows=False)).folder


def import_described(described: mapping.Mapping, files: list[Path], out: Path | None, reporter: ProgressReporter) -> Dataset:
    """Imports a user's files as a mapping says that is not a file.

    Args:
        described: the mapping; the files that it names are not looked at.
        files: the files.
        out: the folder for the dataset; the cache if None, where they are imported once.
        reporter: reports the import.

    Raises:
        UsageError: for files that are not there or do not fit, and for a folder that is not free.

    """
    for file in files:
        if not file.is_file():
            raise UsageError(f"{file}: no such file")

    def make(folder: Path) -> Dataset:
        reporter.say(f"importing {', '.join(map(str, files))}")
        return mapping.import_mapped(described, files, folder, "by a call of the library")

    if out is not None:
        return make_in(out, make)
    fingerprint = mapping.files_fingerprint(described.model_dump_json().encode(), files)
    return _made_once(cache_folder("datasets") / f"{described.name}-{fingerprint}", make)


def _made_once(folder: Path, make: Callable[[Path], Dataset]) -> Dataset:
    """The dataset in a folder of the cache; made beside it first, so that one cut short is never taken for whole."""
    if not (folder / DESCRIPTION_FILE).exists():
        check_is_free(folder, f", or remove {folder}: it is not a dataset, and its name is taken by one")
        _make_whole(folder, folder.with_name(f"{folder.name}.{os.getpid()}.unfinished"), make)
    return Dataset.at(folder)


def _make_whole(folder: Path, unfinished: Path, make: Callable[[Path], Dataset]) -> None:
    """Makes a dataset in `unfinished`, whose name nobody else uses, and renames it; nothing is left there when that fails."""
    try:
        make(unfinished)
        remove_if_empty(folder)
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def cached_datasets() -> dict[Path, int]:
    """The datasets in the cache, with their bytes; also those that somebody left unfinished. Folders with anything else are left out."""
    folders = [folder for folder in sorted(cache_folder("datasets").iterdir()) if folder.is_dir() and not folder.is_symlink()]
    files = {folder: [file for file in folder.rglob("*") if not file.is_dir()] for folder in folders}
    return {
        folder: sum(file.stat().st_size for file in files[folder])
        for folder in folders
        if _is_cached_dataset(folder, files[folder])
    }


def _is_cached_dataset(folder: Path, files: list[Path]) -> bool:
    is_one = (folder / DESCRIPTION_FILE).exists() or _UNFINISHED.fullmatch(folder.name) is not None
    ours = {DESCRIPTION_FILE, KNOWN_ANSWERS_FILE}
    return is_one and all(file.name in ours or file.suffix in {SUFFIX, ".unfinished"} for file in files)


def import_files(names: list[str], out: Path, *, skip_bad_rows: bool, reporter: ProgressReporter | None = None) -> Dataset:
    """Imports original files of a published dataset, or a user's own.

    Args:
        names: an importer's name or a mapping file first, then the files; or files alone, whose importer is detected.
        out: the folder for the dataset; it must be empty or not there.
        skip_bad_rows: whether bad rows are left out and counted; else nothing is imported if there is one.
        reporter: reports progress, if given.

    Raises:
        UsageError: for files that do not fit, and for bad rows that are not skipped.

    """
    reporter = reporter or ProgressReporter(quiet=True)
    first, files = names[0], [Path(name) for name in names[1:]]
    if first.endswith(".toml"):
        return make_in(out, lambda folder: mapping.import_mapping(Path(first), files, folder, skip_bad_rows=skip_bad_rows))
    if first in IMPORTERS:
        if not files:
            raise UsageError(f"data import {first}: name the files to import")
        importer = IMPORTERS[first]
    else:
        files = [Path(name) for name in names]
        importer = _recognised(files[0])
    return make_in(out, lambda folder: importer.import_files(files, folder, skip_bad_rows, reporter))


def _recognised(file: Path) -> Importer:
    if file.is_dir():
        # All files of a folder tree are alike.
        file = next(iter(sorted(file.rglob("*.csv"))), file)
    found = next((importer for importer in IMPORTERS.values() if importer.recognises(file)), None)
    if found is None:
        columns = columns_of(file)
        known = ", ".join(IMPORTERS)
        raise UsageError(
            f"{file}, line 1: columns {', '.join(columns[:8])} belong to no dataset that is known ({known}); describe your own with a mapping file"
        )
    return found


def make_in(out: Path, make: Callable[[Path], Dataset]) -> Dataset:
    """Makes a dataset in `out`, which must be free; nothing is left there when it fails."""
    check_is_free(out)
    # Nobody else has a folder of this name, so that what is removed is ours.
    _make_whole(out, out.with_name(f".{out.name}.{uuid.uuid4().hex}.unfinished"), make)
    return Dataset.at(out)
