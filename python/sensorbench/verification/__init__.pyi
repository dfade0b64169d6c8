from .accounting import Writes, account
from .answers import (
    REFERENCE_SAMPLE,
    answer_comparison,
    answers_by_operation,
    applicable_known_answers,
    check_dataset,
    check_target,
    reference_table,
)
from .checksum import checksum_of_all, checksums
from .contents import check_contents, written_rows
from .freshness import freshness_of
from .guarantees import guaranteed, register_guarantees
from .history import keep_history
from .retention import Retained, expired_before, time_to_live
from .retention_figures import retention_of

__all__ = [
    "REFERENCE_SAMPLE",
    "Retained",
    "Writes",
    "account",
    "answer_comparison",
    "answers_by_operation",
    "applicable_known_answers",
    "check_contents",
    "check_dataset",
    "check_target",
    "checksum_of_all",
    "checksums",
    "expired_before",
    "freshness_of",
    "guaranteed",
    "keep_history",
    "reference_table",
    "register_guarantees",
    "retention_of",
    "time_to_live",
    "written_rows",
]
