"""Datasets: relations of real or generated rows, and where they come from."""

from sensorbench.dataset.dataset import ARTICLES, LOCATIONS, LOG, MEASUREMENTS, Dataset, Description, workbench
from sensorbench.dataset.registry import DEFAULT_SEED, GENERATED, IMPORTERS, SHIPPED, generate, import_files, open_dataset

__all__ = [
    "ARTICLES",
    "DEFAULT_SEED",
    "GENERATED",
    "IMPORTERS",
    "LOCATIONS",
    "LOG",
    "MEASUREMENTS",
    "SHIPPED",
    "Dataset",
    "Description",
    "generate",
    "import_files",
    "open_dataset",
    "workbench",
]
