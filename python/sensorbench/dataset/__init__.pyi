from .dataset import ARTICLES, LOCATIONS, LOG, MEASUREMENTS, Dataset, Description, workbench
from .registry import GENERATED, IMPORTERS, SHIPPED, generate, import_files, is_named, open_dataset

__all__ = [
    "ARTICLES",
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
    "is_named",
    "open_dataset",
    "workbench",
]
