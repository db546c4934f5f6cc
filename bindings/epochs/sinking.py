"""Results of an epoch as Parquet files, one for each slot, written once by whoever is first.

An epoch that is done again sends rows to the same slots as before, so each file of it has the same
results; readers have every result once.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.parquet as pq
from windjoin.epochs.job import Job
from windjoin.epochs.manifest import Manifest
from windjoin.epochs.stores import folder_at


def write_parquet(
    results: Iterable[pa.RecordBatch], job: Job, manifest: Manifest, slot: int, path: str
) -> int:
    """Write the results of a slot; how many there were.

    There is no file without results, but for slot 0 of epoch 0, which tells the columns.
    """
    made = pa.BufferOutputStream()
    rows = 0
    with pq.ParquetWriter(made, job.result.schema) as writer:
        for batch in results:
            rows += batch.num_rows
            writer.write_batch(batch)
    if rows or manifest.epoch == slot == 0:
        name = f"epoch-{manifest.epoch:010d}-slot-{slot:04d}-{job.told_apart}.parquet"
        folder_at(path).put(name, [made.getvalue()])
    return rows
