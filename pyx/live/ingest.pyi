from typing import Any

from typing_extensions import disjoint_base

@disjoint_base
class Ingest:
    def __new__(cls, given: Any) -> Ingest: ...  # an ``Ingesting``
    # a table, or what `StreamInput.push` gives; None: it needs another way, and nothing was done
    def push(self, rows: Any, session_lock: Any, sequence: int, told: bool = False) -> Any: ...
