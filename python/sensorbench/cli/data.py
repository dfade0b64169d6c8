"""`sensorbench data`: list, describe, checksum, generate, import, export, clean."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from sensorbench.cli.confirm import Yes, confirm
from sensorbench.cli.options import Json
from sensorbench.cli.printing import new_table, print_json
from sensorbench.dataset import (
    ARTICLES,
    GENERATED,
    IMPORTERS,
    MEASUREMENTS,
    SHIPPED,
    Description,
    article_model,
    generate,
    import_files,
    open_dataset,
)
from sensorbench.dataset import dataset as datasets
from sensorbench.dataset.article_model import ArticleModel, articles_at, fit_articles, shipped_model
from sensorbench.dataset.csv_rows import MAX_SHOWN
from sensorbench.dataset.export import FORMS, export
from sensorbench.dataset.fitted import MODEL_SUFFIX, Model, fit, generate_like, read_model
from sensorbench.dataset.generated import in_this_process
from sensorbench.dataset.registry import cached_datasets, make_in
from sensorbench.errors import UsageError
from sensorbench.options import DEFAULT_SEED
from sensorbench.paths import cache_folder, check_is_free
from sensorbench.progress import ProgressReporter, console, error_console
from sensorbench.report import formatting
from sensorbench.results.files import write_text
from sensorbench.runner import abandoned_pilots, cached_tables
from sensorbench.spark import find_master, on_spark
from sensorbench.verification import checksum_of_all, checksums
from sensorbench.wording import counted

app = typer.Typer(help="Datasets: real, generated, and your own.", no_args_is_help=True)

Scale = Annotated[
    float,
    typer.Option(
        "--scale", help="Share of the dataset to use: of its span; for machine-log, of its sensors; for articles, the first ones."
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the generator.")]
Dataset = Annotated[str, typer.Argument(help="Name of a dataset, its folder, or a mapping file.")]


@app.command("list")
def list_datasets(json: Json = False) -> None:
    """List the datasets that there are, and how each is had."""
    names = sorted({*SHIPPED, *GENERATED, *IMPORTERS})
    rows = [
        {"name": name, "shipped": name in SHIPPED, "generated": name in GENERATED, "importer": name in IMPORTERS}
        for name in names
    ]
    if json:
        print_json(rows)
        return
    table = new_table("dataset", "in the package", "generator", "importer of the originals")
    for row in rows:
        table.add_row(str(row["name"]), *("yes" if row[key] else "" for key in ("shipped", "generated", "importer")))
    console().print(table)
    console().print(
        "Your own CSV or Parquet files: sensorbench data import MAPPING.toml (see docs/how-to/own-data.md)", highlight=False
    )


@app.command("describe")
def describe(dataset: Dataset, scale: Scale = 1.0, seed: Seed = DEFAULT_SEED, json: Json = False) -> None:
    """Describe a dataset: rows, span, interval, source, license. A generated one is generated for that, once."""
    _print(open_dataset(dataset, scale=scale, seed=seed, reporter=ProgressReporter()).describe(), as_json=json)


@app.command("generate")
def generate_dataset(
    name: Annotated[str, typer.Argument(help="Name of the generator, or the file of a fitted one.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the dataset; it must be empty or not exist.")],
    scale: Scale = 1.0,
    seed: Seed = DEFAULT_SEED,
    copies: Annotated[
        int,
        typer.Option("--copies", help="Copies of each location (fitted generators), or of each article under new ids.", min=1),
    ] = 1,
    articles: Annotated[
        int | None,
        typer.Option("--articles", help="Number of different articles (wikipedia, and generators fitted to articles).", min=1),
    ] = None,
    days: Annotated[
        float | None, typer.Option("--days", help="Length of the span (fitted generators).", show_default=False)
    ] = None,
    spark: Annotated[
        str | None,
        typer.Option(
            "--spark",
            help="Generate with Spark: spark://HOST:PORT, lab:NAME, or local[N]; --out must be on storage that all workers share.",
            show_default=False,
        ),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", help="Number of Spark partitions; four per core if not given.", min=1),
    ] = None,
    json: Json = False,
) -> None:
    """Generate a dataset. Equal seeds give equal bytes, on one machine or on Spark; a smaller scale gives a part of a larger one: its
    beginning, or its first sensors.
    """
    check_is_free(out)
    if partitions is not None and spark is None:
        raise UsageError("--partitions applies to Spark alone; give --spark as well")
    if days is not None and days <= 0:
        raise UsageError(f"--days {days:g}: expected a length above zero")
    master = None if spark is None else find_master(spark)
    model = _model(name, is_needed=articles is not None or copies > 1)
    if articles is not None and not isinstance(model, ArticleModel):
        raise UsageError(f"--articles: {name} generates none; expected wikipedia or a generator that was fitted to articles")

    reporter = ProgressReporter()
    write = in_this_process(reporter) if master is None else on_spark(master, partitions, reporter)

    def make(folder: Path) -> datasets.Dataset:
        if isinstance(model, ArticleModel):
            number = articles or articles_at(scale)
            return article_model.generate_like(model, folder, seed=seed, articles=number, copies=copies, write=write)
        if model is not None:
            return generate_like(model, folder, seed=seed, copies=copies, days=days, write=write)
        return generate(name, folder, scale=scale, seed=seed, write=write)

    _print(make_in(out, make).describe(), as_json=json)


@app.command("checksum")
def show_checksum(dataset: Dataset, scale: Scale = 1.0, seed: Seed = DEFAULT_SEED, json: Json = False) -> None:
    """The checksum of a dataset's rows: equal for equal rows, in any order, in any number of files, wherever they were generated."""
    reporter = ProgressReporter()
    relations = checksums(open_dataset(dataset, scale=scale, seed=seed, reporter=reporter), reporter)
    whole = checksum_of_all(relations)
    if json:
        print_json(
            {
                "checksum": whole,
                "relations": {name: {"rows": relation.rows, "checksum": str(relation)} for name, relation in relations.items()},
            }
        )
        return
    for name, checksum in relations.items():
        console().print(f"  {name}: {checksum} ({counted(checksum.rows, 'row')})", highlight=False)
    console().print(f"{whole}  {dataset}", highlight=False)


def _model(name: str, *, is_needed: bool) -> Model | ArticleModel | None:
    """What was fitted: to be found in a file, or of a dataset of articles if scale and seed do not say enough."""
    if name.endswith(MODEL_SUFFIX):
        return read_model(Path(name))
    return shipped_model() if is_needed and name in article_model.DATASETS else None


@app.command("fit")
def fit_generator(
    dataset: Dataset,
    out: Annotated[Path, typer.Option("--out", help="File for the fitted generator (.json).")],
    scale: Scale = 1.0,
    seed: Seed = DEFAULT_SEED,
    json: Json = False,
) -> None:
    """Fit a generator to a dataset, and tell how close it comes; `data generate` takes the file."""
    if out.suffix != MODEL_SUFFIX or out.exists():
        raise UsageError(f"--out {out}: expected a new file whose name ends with {MODEL_SUFFIX}")
    reporter = ProgressReporter()
    source = open_dataset(dataset, scale=scale, seed=seed, reporter=reporter)
    if ARTICLES in source.describe().relations:
        _fit_to_articles(source, out, seed, as_json=json)
        return
    with reporter.task("fitting", total=1.0) as task:
        model = fit(
            source,
            seed,
            lambda done, all_: task.advance_to(done / all_, f"{done} of {all_} sensors"),
        )
        task.end(counted(len(model.series), "sensor"))
    write_text(out, model.model_dump_json(indent=1) + "\n")
    if json:
        print_json([difference.model_dump() for difference in model.closeness])
        return
    table = new_table(
        "sensor",
        "readings",
        "generated",
        "values differ by",
        "daily pattern differs by",
        "gaps",
        "generated",
        "persistence",
        "generated",
        texts={"sensor"},
    )
    for closeness in sorted(model.closeness, key=lambda difference: -difference.values_ks)[:MAX_SHOWN]:
        name = f"{closeness.site} {closeness.zone} {closeness.sensor}"
        shares = (f"{share:.2%}" for share in (closeness.gap_share, closeness.gap_share_generated))
        alike = (f"{number:.3f}" for number in (closeness.persistence, closeness.persistence_generated))
        table.add_row(
            name,
            f"{closeness.readings:,}",
            f"{closeness.readings_generated:,}",
            f"{closeness.values_ks:.3f}",
            f"{closeness.daily_pattern_rms:.3f}",
            *shares,
            *alike,
        )
    console().print(table)
    more = f" (the {MAX_SHOWN} that differ most, of {len(model.closeness)})" if len(model.closeness) > MAX_SHOWN else ""
    console().print(f"over the same span, generated against fitted{more}; written to {out}", highlight=False)


def _fit_to_articles(source: datasets.Dataset, out: Path, seed: int, *, as_json: bool) -> None:
    model = fit_articles(source, seed)
    write_text(out, model.model_dump_json(indent=1) + "\n")
    measured = {"articles": model.articles, "mean_bytes": model.mean_bytes, "words": len(model.words), "sizes_ks": model.sizes_ks}
    if as_json:
        print_json(measured)
        return
    console().print(
        f"{model.articles:,} articles of {model.mean_bytes:,.0f} bytes on average, {len(model.words):,} words listed; sizes of generated ones differ by "
        f"at most {model.sizes_ks:.3f} (Kolmogorov and Smirnov's distance); written to {out}",
        highlight=False,
    )


@app.command("import")
def import_dataset(
    files: Annotated[
        list[str],
        typer.Argument(help="Name of an importer or a mapping file, followed by files; or files that an importer recognises."),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder for the dataset; it must be empty or not exist.")],
    bad_rows: Annotated[
        str,
        typer.Option("--bad-rows", help="refuse: import nothing if any row is bad. skip: skip and count bad rows."),
    ] = "refuse",
    json: Json = False,
) -> None:
    """Import original files of a published dataset, or your own by a mapping file."""
    if bad_rows not in {"refuse", "skip"}:
        raise UsageError(f"--bad-rows {bad_rows}: expected refuse or skip")
    _print(import_files(files, out, skip_bad_rows=bad_rows == "skip", reporter=ProgressReporter()).describe(), as_json=json)


@app.command("export")
def export_dataset(
    dataset: Dataset,
    out: Annotated[Path, typer.Option("--out", help="Folder for the files; it must be empty or not exist.")],
    form: Annotated[str, typer.Option("--format", help=f"One of {', '.join(FORMS)}.")] = "csv",
    scale: Scale = 1.0,
    seed: Seed = DEFAULT_SEED,
    json: Json = False,
) -> None:
    """Write a dataset as CSV, Parquet or Influx line protocol."""
    written = export(open_dataset(dataset, scale=scale, seed=seed, reporter=ProgressReporter()), form, out)
    if json:
        print_json({"files": written})
        return
    for file in written:
        typer.echo(str(file))


@app.command("clean")
def clean(yes: Yes = False, json: Json = False) -> None:
    """Remove generated, imported and prepared data, and what killed pilots left, from the cache, after asking; data are made again when they are needed."""
    found = {**cached_datasets(), **cached_tables(), **abandoned_pilots()}
    for entry in (entry for name in ("datasets", "prepared") for entry in sorted(cache_folder(name).iterdir())):
        if entry not in found:
            error_console().print(f"{entry} stays: sensorbench did not put it there", highlight=False, markup=False)
    if not found:
        _print_removed({}, as_json=json)
        return
    named = ", ".join(f"{entry} ({formatting.size(size)})" for entry, size in found.items())
    confirm(f"remove from the cache: {named}", yes=yes)
    for entry in found:
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    _print_removed(found, as_json=json)


def _print_removed(sizes: Mapping[Path, int], *, as_json: bool) -> None:
    if as_json:
        print_json({"removed": [{"path": entry, "bytes": size} for entry, size in sizes.items()]})
    else:
        typer.echo(f"removed: {formatting.size(sum(sizes.values()))}" if sizes else "the cache has no data")


def _print(description: Description, *, as_json: bool) -> None:
    if as_json:
        # What was counted has names of its own, beside those of the description.
        described = description.model_dump(mode="json")
        print_json({**described.pop("counted"), **described})
        return
    screen = console()
    screen.print(description.title, style="bold")
    if description.generated:
        screen.print("generated, not measured", style="yellow")
    for name, relation in description.relations.items():
        screen.print(f"  {name}: {counted(relation.rows, 'row')} ({', '.join(relation.columns)})", highlight=False)
    _print_span(description)
    if MEASUREMENTS in description.relations:
        screen.print(f"  site is {description.site_is}, zone is {description.zone_is}", highlight=False)
    screen.print(
        f"  source: {description.source}\n  license: {description.license}\n  made: {description.how_made}", highlight=False
    )
    for note in description.notes:
        screen.print(f"  note: {note}", highlight=False)


def _print_span(description: Description) -> None:
    scale = f"scale {description.scale:g}"
    if description.first_time is None:
        console().print(f"  {scale}", highlight=False)
        return
    interval = "" if description.interval_s is None else f" interval {description.interval_s:g} s,"
    console().print(f"  span: {description.first_time} to {description.last_time},{interval} {scale}", highlight=False)
