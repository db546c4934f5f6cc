"""A job as one streaming query carries it out."""

from __future__ import annotations

from dataclasses import replace

from windjoin.epochs.job import Job
from windjoin.epochs.stores import below


def of_query(job: Job, query: str) -> Job:
    """The job with a log of its own: several queries may have one folder for theirs."""
    return replace(job, root=below(job.root, query))
