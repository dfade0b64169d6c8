"""`study.toml` of the study of elastic databases."""

from pathlib import Path

from pydantic import Field

from sensorbench import toml_file

FOLDER = Path(__file__).parent


class Role(toml_file.FileModel):
    """A database: what people call it, as the paper does if it has it, its names here, and options of its URL by which it is another one."""

    title: str
    databases: list[str]
    options: dict[str, str] = {}


class System(toml_file.FileModel):
    """What is measured: a target, settings of its servers, and how often the articles are loaded there, where that is not as the study says."""

    target: str
    server_settings: list[str] = []
    copies: int | None = Field(default=None, ge=1)
    # What of the paper's conditions it cannot have here, in words.
    note: str = ""


class Scenario(toml_file.FileModel):
    """What is done to each cluster, in this order; `judged`: whether that is what the paper's claims are about."""

    title: str
    changes: list[str] = Field(min_length=1)
    judged: bool = False


class StudyFile(toml_file.FileModel):
    """The study. `server_memory` is that of all nodes of a cluster at the start; `repetitions`: how often each part is measured."""

    title: str
    question: str
    source: str
    dataset: str
    copies: int
    server_memory: str
    targets: list[str]
    nodes: int
    repetitions: int
    systems: dict[str, System]
    scenarios: dict[str, Scenario]
    roles: dict[str, Role]


def load_study_file() -> StudyFile:
    """The study in this folder of the package."""
    return toml_file.load(FOLDER / "study.toml", StudyFile)
