"""Joins on Spark with several executors; the command is ``pytest -m cluster``."""

import pytest

MARKS = [
    pytest.mark.cluster,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
