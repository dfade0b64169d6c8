"""What is known of recorded traffic: figures alone, no literal of any statement."""

from pydantic import BaseModel, ConfigDict, Field


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Quantiles(_Part):
    """Of some values, in their unit."""

    median: float
    p99: float
    maximum: float


class TemplateFigures(_Part):
    """The statements of one template."""

    number: int
    statement: str
    consistency: str | None = Field(default=None, description="The consistency level that was requested, where the log says it.")
    kind: str
    tables: list[str]
    statements: int
    share: float = Field(description="Of all statements.")
    errors: int
    duration_s: Quantiles | None = Field(description="None if the log has no durations.")
    rows: Quantiles | None = Field(description="Rows of an answer; None if the log does not say.")


class RateBucket(_Part):
    """What arrived in a time bucket, by kind, per second."""

    start_s: float = Field(description="Since the first statement.")
    reads: float
    writes: float
    others: float


class Dispersion(_Part):
    """Index of dispersion of the arrivals: variance of their number per window over its mean. Poisson arrivals have 1 at each length."""

    window_s: float
    windows: int
    index: float


class SessionFigures(_Part):
    """The sessions of a trace."""

    sessions: int
    open_at_most: int = Field(description="Sessions between their first and their last statement at the same time.")
    statements: Quantiles
    length_s: Quantiles
    think_time_s: Quantiles | None = Field(
        description="From the end of a statement to the arrival of the next; None without durations."
    )


class TransactionFigures(_Part):
    """The explicit transactions of a trace."""

    transactions: int
    committed: int
    rolled_back: int
    statements: Quantiles = Field(description="With those that begin and end it.")
    length_s: Quantiles


class SkewPoint(_Part):
    """How much of the executions of a template a few values of a parameter make up."""

    values: int = Field(description="Number of most frequent values.")
    share: float = Field(description="Executions that have one of them.")


class ParameterSkew(_Part):
    """How unevenly the values of one parameter of a template are spread."""

    template: int
    position: int = Field(description="From 1.")
    type: str
    values: int = Field(description="Distinct values.")
    top_share: float = Field(description="Executions with the most frequent value.")
    top_percent_share: float = Field(
        description="Executions with one of the most frequent 1% of the values (at least one value)."
    )
    curve: list[SkewPoint] = Field(default=[], description="For 1, 10, 100, … of the most frequent values, and for all.")


class TableUse(_Part):
    """How often statements read and write a table."""

    table: str
    reads: int
    writes: int


class TrafficDescription(_Part):
    """A trace in figures."""

    database: str
    version: str
    statements: int
    errors: int
    length_s: float
    templates: list[TemplateFigures]
    bucket_s: float
    rate: list[RateBucket]
    hours: list[int] = Field(description="Statements by hour of the day (UTC), 24 of them; empty for a trace of less than a day.")
    dispersion: list[Dispersion]
    sessions: SessionFigures
    transactions: TransactionFigures | None
    parameters: list[ParameterSkew]
    tables: list[TableUse]
