"""The test suite itself: what would make its tests pass although they check nothing."""

import subprocess
import sys
from pathlib import Path

CONFIGURATION = Path(__file__).parent.parent / "pyproject.toml"


def test_a_test_without_cases_is_an_error(tmp_path: Path) -> None:
    """Cases are found in files here and there: schemas that are shipped, entries of the catalog."""
    planted = tmp_path / "test_planted.py"
    planted.write_text(
        'import pytest\n\n\n@pytest.mark.parametrize("name", [])\ndef test_each(name: str) -> None:\n    assert name\n',
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "pytest", "-c", CONFIGURATION, "--rootdir", tmp_path, "-p", "no:cacheprovider", planted]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ended.returncode == 2, ended.stdout
    assert "Empty parameter set in 'test_each'" in ended.stdout
